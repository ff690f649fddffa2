"""Makes a request over all namespaces leave out some of them, by terms in its field selector.

API servers have the field `metadata.namespace` for every namespaced kind, and apply field selectors to lists, watches
and deletions of collections, in every format and on every page. The terms come first, so that nothing in the caller's
own selector changes how a server reads them. All terms of a selector have to hold.
"""

from functools import lru_cache
from urllib.parse import quote, unquote_plus

_PARAMETER = "fieldSelector"
_CACHED_QUERIES = 1024


def selector_without(namespaces: tuple[str, ...], selector: str) -> str:
    """The selector with the terms that leave out `namespaces`."""
    terms = [f"metadata.namespace!={name}" for name in namespaces]
    return ",".join([*terms, selector] if selector else terms)


@lru_cache(maxsize=_CACHED_QUERIES)
def without_namespaces(query: str, namespaces: tuple[str, ...]) -> str:
    """The query with the terms in its field selector. All the rest stays as the caller has encoded it.

    API servers take the first of several values; the others are removed, so that no server can take one of them.
    """
    own: str | None = None
    kept: list[str] = []
    for parameter in query.split("&") if query else ():
        name, _, value = parameter.partition("=")
        if unquote_plus(name) != _PARAMETER:
            kept.append(parameter)
        elif own is None:
            own = value
    terms = quote(selector_without(namespaces, ""), safe="")
    return "&".join([*kept, f"{_PARAMETER}={terms}%2C{own}" if own else f"{_PARAMETER}={terms}"])
