"""Which method a verb and a path mean. The router is built once from the routes of the protos; a lookup takes one step
per segment.

A literal segment goes before a variable in the same position (`instances/config` before `instances/{name}`), but only
if the rest of the path matches too. What follows the last colon of a path is an action if a route there has it, and
otherwise belongs to the name. Paths are split into segments before they are decoded, so an encoded slash or colon is
never a separator.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from kairship.apiserver.http.transcoding import Transcoder
from kairship.rpc.errors import InvalidArgument
from kairship.wire import Method

_VARIABLE = re.compile(r"\{([A-Za-z0-9_.]+)\}")
_WORD = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Match:
    method: Method
    transcoder: Transcoder
    values: tuple[str, ...]
    """The decoded values of the variables of the path, in their order."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The path does not exist, or does not have this verb."""

    allowed: tuple[str, ...]
    """The verbs that the path has; empty if the path does not exist."""


@dataclass(slots=True)
class _Node:
    words: dict[str, "_Node"] = field(default_factory=dict)
    variable: "_Node | None" = None
    ends: dict[str, dict[str, tuple[Method, Transcoder]]] = field(default_factory=dict)
    """The methods that end here, by action (empty for none) and verb."""


class Router:
    def __init__(self, methods: Iterable[Method]) -> None:
        self._root = _Node()
        for method in methods:
            for route in method.routes:
                path, action = _split_action(route.template)
                node, names = self._root, []
                for segment in path.removeprefix("/").split("/"):
                    variable = _VARIABLE.fullmatch(segment)
                    if variable:
                        names.append(variable[1])
                        node.variable = node = node.variable or _Node()
                    elif _WORD.fullmatch(segment):
                        node = node.words.setdefault(segment, _Node())
                    else:
                        raise ValueError(f"{method.path}: a segment like {segment!r} is not supported")
                verbs = node.ends.setdefault(action, {})
                if route.verb in verbs:
                    raise ValueError(f"{route.verb} {route.template} is already {verbs[route.verb][0].path}")
                verbs[route.verb] = (method, Transcoder(method, route, names))

    def find(self, verb: str, path: str) -> Match | Mismatch:
        """`path` is still percent-encoded. Raises `InvalidArgument` if it is not in UTF-8."""
        segments = path.removeprefix("/").split("/")
        if ":" not in segments[-1] and "%" not in path and (match := self._find_first(verb, segments)):
            return match
        *before, last = segments
        whole, action = _split_action(last)
        allowed: set[str] = set()
        for final, wanted in ((whole, action), (last, "")) if action else ((last, ""),):
            segments = [_decoded(segment) for segment in (*before, final)]
            for values, ends in _walk(self._root, segments, 0, ()):
                verbs = ends.get(wanted, {})
                if found := verbs.get(verb):
                    return Match(*found, values)
                allowed.update(verbs)
        return Mismatch(tuple(sorted(allowed)))

    def _find_first(self, verb: str, segments: list[str]) -> Match | None:
        """Follows the first way through the tree, which is the right one for nearly every path."""
        node, values = self._root, []
        for segment in segments:
            word = node.words.get(segment)
            if word is not None:
                node = word
            elif node.variable is not None and segment:
                node = node.variable
                values.append(segment)
            else:
                return None
        found = node.ends.get("", {}).get(verb)
        return Match(*found, tuple(values)) if found else None


def _walk(
    node: _Node, segments: list[str], at: int, values: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, dict[str, tuple[Method, Transcoder]]]]]:
    """Yields every way through the tree that consumes all segments, the best first. It recurses once per segment of a
    template."""
    if at == len(segments):
        yield values, node.ends
        return
    if word := node.words.get(segments[at]):
        yield from _walk(word, segments, at + 1, values)
    if node.variable and segments[at]:
        yield from _walk(node.variable, segments, at + 1, (*values, segments[at]))


def _split_action(path: str) -> tuple[str, str]:
    before, colon, action = path.rpartition(":")
    return (before, action) if colon and "}" not in action else (path, "")


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InvalidArgument("the path is not in UTF-8") from None
