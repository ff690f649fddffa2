"""What the first line of a request means, to whoever sends it and whenever.

Programs ask for the same again and again, and reading a line takes longer than looking up what it asks for: what was
read is remembered.
"""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

import msgspec

from kairship.apiserver.admission import Place
from kairship.apiserver.browser_sessions import refuse_secrets
from kairship.apiserver.proxy.asking import Asked, AskedPath, asked, is_set
from kairship.apiserver.proxy.target import Target, target_by_name, target_of
from kairship.kube.native_access import PREFIX, is_a_name_of_ours

_REMEMBERED = 1024
_LONGEST = 1024
"""Characters of a line that is remembered."""
_DELICATE_PARTS = frozenset({"exec", "attach", "portforward", "log", "proxy"})


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    query: str
    parameters: Mapping[str, str]
    repeats: bool
    """Whether one of the parameters is there more than once."""
    asked: Asked | AskedPath
    verb: str
    place: Place
    """What may be slow or silent without the others' being so: the instance, or a member of it."""
    is_wide: bool
    """Whether it asks for as many objects as there are."""
    lasts: bool
    """Whether the reply goes on for as long as the caller wants: a watch, or logs that are followed."""
    is_delicate: bool
    """Whether it is not done while rights may be out of date: writes, terminals, logs and Secrets."""


def line_of(method: str, address: str, *, asked_for: str, host: str) -> RequestLine | None:
    """`asked_for` is the name in TLS, `host` that of HTTP. None if it leads nowhere through the proxy.

    Raises `ApiError` if nobody should follow it.
    """
    if not (address.startswith(PREFIX) or is_a_name_of_ours(asked_for) or is_a_name_of_ours(host.partition(":")[0])):
        return None
    if len(address) + len(host) > _LONGEST:
        return _read(method, address, asked_for, host)
    return _remembered(method, address, asked_for, host)


def _read(method: str, address: str, asked_for: str, host: str) -> RequestLine | None:
    path, _, query = address.partition("?")
    target = target_by_name(asked_for, host, path) or target_of(path)
    if target is None:
        return None
    refuse_secrets(query)
    pairs = parse_qsl(query, keep_blank_values=True)
    # The first of several is the one that API servers look at.
    parameters = dict(reversed(pairs))
    what = asked(method, target.path, parameters)
    verb = what.attributes.verb if isinstance(what, Asked) else "discover"
    return RequestLine(
        target=target,
        query=query,
        parameters=parameters,
        repeats=len(parameters) < len(pairs),
        asked=what,
        verb=verb,
        place=Place(f"cluster {target.cluster} of {target.instance}" if target.cluster else target.instance),
        is_wide=verb in {"list", "deletecollection"} and "limit" not in parameters,
        lasts=_lasts(what, parameters),
        is_delicate=_is_delicate(what),
    )


_remembered = lru_cache(maxsize=_REMEMBERED)(_read)


def _lasts(what: Asked | AskedPath, parameters: Mapping[str, str]) -> bool:
    if isinstance(what, AskedPath):
        return False
    return what.watches or (what.attributes.subresource == "log" and is_set(parameters, "follow"))


def _is_delicate(what: Asked | AskedPath) -> bool:
    if isinstance(what, AskedPath):
        return False
    about = what.attributes
    reads = about.verb in {"get", "list", "watch"}
    return not reads or about.resource == "secrets" or about.subresource in _DELICATE_PARTS
