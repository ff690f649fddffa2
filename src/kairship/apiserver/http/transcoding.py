"""Turns a REST request (variables of the path, query string, body) into the message that the method takes.

There is one transcoder per route, made at start; it does no I/O. Where two sources name the same field, the path wins,
because users and proxies see it. The authoriser checks the message that results.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from protobuf import DescField, DescFieldValueMessage, Message

from kairship.apiserver.http.json_bounds import excess
from kairship.rpc.errors import InvalidArgument
from kairship.wire import Method, Parameter, Route, UnreadableError, find_parameter, read

DEEPEST = 100
MOST_VALUES = 100_000
MOST_PARAMETERS = 1000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Transcoder:
    def __init__(self, method: Method, route: Route, variables: Sequence[str]) -> None:
        """Raises `ValueError` if the route names a field that the request message does not have."""
        self.takes_body = bool(route.body)
        self._kind = method.request
        self._strict = method.strict
        self._variables = [self._parameter(name, route) for name in variables]
        self._only_strings = all(variable.is_plain for variable in self._variables) and not route.body
        self._takes_query = route.body != "*"
        self._body = None if route.body in ("", "*") else self._body_field(route)

    def read(self, values: Sequence[str], query: str, body: bytes) -> tuple[Message[Any], Sequence[str]]:
        """Returns the message, and the paths of unknown fields that are ignored. Raises `InvalidArgument`."""
        for variable, value in zip(self._variables, values, strict=True):
            if _CONTROL.search(value) or value in (".", ".."):
                problem = "must not contain control characters, nor be a dot segment"
                raise InvalidArgument(violations=[(variable.path, problem)])
        if self._only_strings and not query:
            return self._kind(**{v.field.local_name: text for v, text in zip(self._variables, values, strict=True)}), ()
        try:
            message, ignored = self._read_body(body)
            ignored = [*ignored, *self._put_query(message, query)]
            for variable, value in zip(self._variables, values, strict=True):
                variable.put(message, [value])
        except UnreadableError as unreadable:
            raise InvalidArgument(violations=[(unreadable.path or "body", unreadable.problem)]) from unreadable
        return message, ignored

    def _read_body(self, body: bytes) -> tuple[Message[Any], Sequence[str]]:
        if not self.takes_body or not body.strip():
            return self._kind(), ()
        if problem := excess(body, levels=DEEPEST, values=MOST_VALUES):
            raise UnreadableError("", problem)
        if self._body is None:
            reading = read(self._kind, body, strict=self._strict)
            return reading.message, reading.ignored
        field, kind = self._body
        reading = read(kind, body, strict=self._strict)
        return self._kind(**{field.local_name: reading.message}), reading.ignored

    def _put_query(self, message: Message[Any], query: str) -> Iterable[str]:
        """Returns the names of the parameters that are ignored."""
        if not query:
            return []
        try:
            pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
        except UnicodeDecodeError:
            raise UnreadableError("query", "is not in UTF-8") from None
        except ValueError:
            raise UnreadableError("query", f"has more than {MOST_PARAMETERS} parameters") from None
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            values.setdefault(name, []).append(value)
        ignored = []
        for name, texts in values.items():
            parameter = find_parameter(self._kind, name) if self._takes_query else None
            if parameter is not None:
                parameter.put(message, texts)
            elif self._strict:
                raise UnreadableError(name, "is not a parameter of this method")
            else:
                ignored.append(name)
        return ignored

    def _parameter(self, name: str, route: Route) -> Parameter:
        parameter = find_parameter(self._kind, name)
        if parameter is None:
            raise ValueError(f"{self._kind.desc()} has no field {name} that {route.template} could fill")
        return parameter

    def _body_field(self, route: Route) -> tuple[DescField, type[Message[Any]]]:
        field = next((field for field in self._kind.desc().fields if field.name == route.body), None)
        if field is None or not isinstance(field.value, DescFieldValueMessage):
            raise ValueError(f"{self._kind.desc()} has no message {route.body} for the body of {route.template}")
        return field, field.value.message.type
