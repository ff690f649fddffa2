"""Everything that follows from the first line of a request, whichever client sends it.

Programs send the same requests again and again, and parsing a line takes longer than answering it from the index, so
parsed lines are cached.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

import msgspec

from kairship.access.catalogue.attributes import is_about_secret_data
from kairship.apiserver.auth.authentication import refuse_secrets
from kairship.apiserver.flowcontrol.fair_queue import Destination
from kairship.apiserver.proxy.request.request_info import (
    NonResourceRequest,
    RequestInfo,
    ResourceRequest,
    is_set,
    parse_request_info,
)
from kairship.apiserver.proxy.request.target import Target, target_of_host, target_of_path
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.native_access import PREFIX, is_native_host

_CACHED_LINES = 1024
_LONGEST_CACHED = 1024
"""Characters of the longest line that is cached."""
# Go drops parameters with these, Python keeps them.
_AMBIGUOUS = re.compile(r";|%(?![0-9A-Fa-f]{2})")
_SENSITIVE_SUBRESOURCES = frozenset({"exec", "attach", "portforward", "log", "proxy"})


class RequestLine(msgspec.Struct, frozen=True, kw_only=True):
    target: Target
    query: str
    parameters: Mapping[str, str]
    has_repeated_parameters: bool
    request_info: RequestInfo
    verb: str
    destination: Destination
    """The instance, or one member of it: each of them may be slow or silent while the others are not."""
    is_unpaged: bool
    """Whether it concerns all objects of a collection at once: such a request takes several seats of the fair queue."""
    is_long_running: bool
    """Whether the reply lasts for as long as the client wants: a watch, or logs that are followed."""
    needs_current_rights: bool
    """Whether it is refused while rights may be out of date: writes, exec and the like, logs and Secrets."""


def parse_request_line(method: str, address: str, *, server_name: str, host: str) -> RequestLine | None:
    """`server_name` is the one that TLS named (SNI), `host` the header. None if the request is not for the proxy.

    Raises `ApiError` if the path or the names are ambiguous or unsafe.
    """
    if not (address.startswith(PREFIX) or is_native_host(server_name) or is_native_host(host.partition(":")[0])):
        return None
    if len(address) + len(host) > _LONGEST_CACHED:
        return _parse(method, address, server_name, host)
    return _parse_cached(method, address, server_name, host)


def _parse(method: str, address: str, server_name: str, host: str) -> RequestLine | None:
    path, _, query = address.partition("?")
    target = target_of_host(server_name, host, path) or target_of_path(path)
    if target is None:
        return None
    refuse_secrets(query)
    if _AMBIGUOUS.search(query):
        raise InvalidArgument(
            "the query has a semicolon or an incomplete escape, which servers read in different ways; "
            "write %3B for a semicolon and %25 for a percent sign"
        )
    pairs = parse_qsl(query, keep_blank_values=True)
    # API servers take the first of several values.
    parameters = dict(reversed(pairs))
    request_info = parse_request_info(method, target.path, parameters)
    verb = request_info.attributes.verb if isinstance(request_info, ResourceRequest) else "discover"
    return RequestLine(
        target=target,
        query=query,
        parameters=parameters,
        has_repeated_parameters=len(parameters) < len(pairs),
        request_info=request_info,
        verb=verb,
        destination=Destination(
            f"cluster {target.cluster} of {target.instance}" if target.cluster else target.instance
        ),
        is_unpaged=verb in {"list", "deletecollection"} and "limit" not in parameters,
        is_long_running=_is_long_running(request_info, parameters),
        needs_current_rights=_needs_current_rights(request_info),
    )


_parse_cached = lru_cache(maxsize=_CACHED_LINES)(_parse)


def _is_long_running(request_info: RequestInfo, parameters: Mapping[str, str]) -> bool:
    if isinstance(request_info, NonResourceRequest):
        return False
    return request_info.is_watch or (request_info.attributes.subresource == "log" and is_set(parameters, "follow"))


def _needs_current_rights(request_info: RequestInfo) -> bool:
    if isinstance(request_info, NonResourceRequest):
        return False
    attributes = request_info.attributes
    is_read = attributes.verb in {"get", "list", "watch"}
    return not is_read or is_about_secret_data(attributes) or attributes.subresource in _SENSITIVE_SUBRESOURCES
