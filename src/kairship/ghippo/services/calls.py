"""The origin, session and numbers of a call, as several services need them."""

from kairship.ghippo.errors import FailedPrecondition, InvalidArgument
from kairship.ghippo.identity.sign_in import Origin
from kairship.rpc.calls import Call


def origin_of(call: Call) -> Origin:
    return Origin(call.origin, "", call.request_id)


def require_session(call: Call) -> str:
    """The caller's session. Actions that a leaked access token could prolong itself by need a signed-in user."""
    if call.caller.authenticated_by != "session" or not call.caller.session:
        raise FailedPrecondition("this needs a session; sign in with your password or identity provider and try again")
    return call.caller.session


def number(text: str, field: str) -> int:
    """The number of a folder or workspace, which is its key in the database."""
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise InvalidArgument(f"{field} must be a number", field=field)
    return int(text)


def optional_number(text: str, field: str) -> int | None:
    return number(text, field) if text else None
