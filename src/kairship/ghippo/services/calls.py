"""What services need to know of a call."""

from kairship.ghippo.errors import Invalid, Precondition
from kairship.ghippo.sign_in import Origin
from kairship.rpc.calls import Call


def origin_of(call: Call) -> Origin:
    return Origin(call.origin, "", call.request_id)


def require_session(call: Call) -> str:
    """A token that leaked must not make itself immortal: these things need somebody who signed in."""
    if call.caller.authenticated_by != "session" or not call.caller.session:
        raise Precondition("this needs a session; sign in with your password or identity provider and try again")
    return call.caller.session


def number(text: str, field: str) -> int:
    """The number of a folder or workspace, as it is in the database."""
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise Invalid("must be a number", field=field)
    return int(text)


def optional_number(text: str, field: str) -> int | None:
    return number(text, field) if text else None
