"""REST and gRPC give a service the same request for the same call, whatever is in it."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protobuf import (
    DescEnum,
    DescField,
    DescFieldValueEnum,
    DescFieldValueList,
    DescFieldValueMap,
    DescFieldValueMessage,
    DescFieldValueScalar,
    DescMessage,
    Message,
    ScalarType,
)
from support.entrance import METHODS

from kairship.apiserver.http.routing import Match, Router
from kairship.wire import Method, methods, write

ROUTER = Router(methods().values())
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SEGMENT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12).filter(
    lambda text: text not in (".", "..")
)
SCALARS: dict[ScalarType, st.SearchStrategy[Any]] = {
    ScalarType.STRING: TEXT,
    ScalarType.BYTES: st.binary(max_size=8),
    ScalarType.BOOL: st.booleans(),
    ScalarType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False).map(lambda x: 0.0 if x == 0 else x),
    ScalarType.INT32: st.integers(-(2**31), 2**31 - 1),
    ScalarType.INT64: st.integers(-(2**63), 2**63 - 1),
}


def value(kind: ScalarType | DescMessage | DescEnum, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case DescMessage():
            return message(kind, depth - 1)
        case DescEnum():
            return st.sampled_from([kind.type(choice.number) for choice in kind.values])
        case ScalarType():
            return SCALARS[kind]


def field_value(field: DescField, depth: int) -> st.SearchStrategy[Any]:
    match field.value:
        case DescFieldValueMessage(message=inner):
            return message(inner, depth - 1)
        case DescFieldValueList(element=element):
            return st.lists(value(element, depth), max_size=2)
        case DescFieldValueMap(value=element):
            return st.dictionaries(TEXT, value(element, depth), max_size=2)
        case DescFieldValueEnum(enum=kind):
            return value(kind, depth)
        case DescFieldValueScalar(scalar=scalar):
            return SCALARS[scalar]


@st.composite
def message(draw: st.DrawFn, kind: DescMessage, depth: int) -> Message[Any]:
    made = kind.type()
    if depth > 0:
        for field in kind.fields:
            if draw(st.booleans()):
                made[field] = draw(field_value(field, depth))
    return made


@st.composite
def calls(draw: st.DrawFn) -> tuple[Method, Message[Any]]:
    method = draw(st.sampled_from(list(METHODS.values())))
    request = draw(message(method.request.desc(), 3))
    for name in variables(method):
        setattr(request, name, draw(SEGMENT))
    if not method.routes[0].body:
        drop_what_a_query_cannot_express(request)
    return method, request


def drop_what_a_query_cannot_express(request: Message[Any]) -> None:
    """A query string cannot express lists and maps of messages, nor an empty message."""
    for field in request.desc().fields:
        if field not in request:
            continue
        match field.value:
            case DescFieldValueMessage():
                drop_what_a_query_cannot_express(request[field])
                if not request[field].to_binary():
                    del request[field]
            case DescFieldValueList(element=DescMessage()) | DescFieldValueMap(value=DescMessage()):
                del request[field]


def variables(method: Method) -> list[str]:
    return [part.partition("}")[0] for part in method.routes[0].template.split("{")[1:]]


def over_rest(method: Method, request: Message[Any]) -> tuple[str, str, bytes]:
    """Returns the path, query and body that a client would make of the request."""
    route = method.routes[0]
    path = route.template
    for name in variables(method):
        path = path.replace(f"{{{name}}}", quote(getattr(request, name), safe=""))
    if route.body:
        return path, "", write(request)
    return path, urlencode(list(parameters(request, "", set(variables(method))))), b""


def parameters(request: Message[Any], prefix: str, leave_out: set[str]) -> Any:
    for field in request.desc().fields:
        if field not in request or (not prefix and field.name in leave_out):
            continue
        name, held = prefix + field.json_name, request[field]
        match field.value:
            case DescFieldValueMessage():
                yield from parameters(held, f"{name}.", set())
            case DescFieldValueList():
                yield from ((name, text(item)) for item in held)
            case DescFieldValueMap():
                yield from ((f"{name}[{key}]", text(item)) for key, item in held.items())
            case _:
                yield name, text(held)


def text(held: Any) -> str:
    match held:
        case bool():
            return str(held).lower()
        case int() | str():
            return str(int(held)) if isinstance(held, int) else held
        case float():
            return repr(held)
        case _:
            raise AssertionError(f"no parameter can be {held!r}")


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(calls())
def test_both_give_the_same_request(call: tuple[Method, Message[Any]]) -> None:
    method, request = call
    path, query, body = over_rest(method, request)
    found = ROUTER.find(method.routes[0].verb, path)
    assert isinstance(found, Match)
    read, ignored = found.transcoder.read(found.values, query, body)
    assert found.method.path == method.path
    assert json.loads(write(read)) == json.loads(write(method.request.from_binary(request.to_binary())))
    assert not ignored
