"""The generated schemas are structural, closed and documented, and match their structures."""

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from kairship.resources import DEFINITIONS, CustomResource, Definition, DocumentedEnum, Fields
from kairship.resources.schema.fields import always
from kairship.resources.schema.rule import Rule
from kairship.resources.schema.structural import Schema, SchemaError, structural_schema

by_kind = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{path}.{key}")


@by_kind
def test_schema_is_structural_and_closed(definition: Definition) -> None:
    known = {"string", "integer", "boolean", "array", "object"}
    for path, node in nodes(structural_schema(definition.resource)):
        assert node["type"] in known, path
        assert not node.keys() & {"$ref", "anyOf", "oneOf", "allOf", "not", "nullable"}, path
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        if node["type"] == "object":
            assert ("properties" in node) != ("additionalProperties" in node), path


@by_kind
def test_every_field_is_documented(definition: Definition) -> None:
    for path, node in nodes(structural_schema(definition.resource)):
        for name, child in node.get("properties", {}).items():
            assert child["description"].strip(), f"{path}.{name}"


@by_kind
def test_lists_say_how_they_are_merged_and_keys_are_required(definition: Definition) -> None:
    for path, node in nodes(structural_schema(definition.resource)):
        if node["type"] == "array":
            merged = node["x-kubernetes-list-type"]
            assert merged in {"atomic", "set", "map"}, path
            assert set(node.get("x-kubernetes-list-map-keys", [])) <= set(node["items"].get("required", [])), path
            assert (merged == "map") == ("x-kubernetes-list-map-keys" in node), path


@by_kind
def test_status_has_no_defaults(definition: Definition) -> None:
    status = structural_schema(definition.resource)["properties"]["status"]
    assert not [path for path, node in nodes(status) if "default" in node]


def texts(schema: Schema) -> st.SearchStrategy[str]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("format") == "date-time":
        moments = st.datetimes(min_value=dt.datetime(1970, 1, 1), max_value=dt.datetime(2200, 1, 1))  # noqa: DTZ001
        return moments.map(lambda moment: moment.isoformat() + "Z")
    lowest, highest = schema.get("minLength", 0), schema.get("maxLength", 1000)
    if "pattern" in schema:
        matching = st.from_regex(str(schema["pattern"]), fullmatch=True)
        return matching.filter(lambda text: lowest <= len(text) <= highest and not text.endswith("\n"))
    return st.text(min_size=lowest, max_size=min(highest, lowest + 8))


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Any value that the schema accepts. Rules are ignored, because they do not decide what can be decoded."""
    match schema["type"]:
        case "string":
            return texts(schema)
        case "integer":
            return st.integers(min_value=schema.get("minimum", 0), max_value=schema.get("maximum", 2**63 - 1))
        case "boolean":
            return st.booleans()
        case "array":
            low = schema.get("minItems", 0)
            return st.lists(values(schema["items"]), min_size=low, max_size=low + 2)
    if "additionalProperties" in schema:
        return st.dictionaries(st.text(max_size=5), values(schema["additionalProperties"]), max_size=2)
    required = set(schema.get("required", []))
    children = {name: values(child) for name, child in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: child for name, child in children.items() if name in required},
        optional={name: child for name, child in children.items() if name not in required},
    )


@by_kind
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_whatever_the_api_server_accepts_can_be_read_and_is_kept(definition: Definition, data: st.DataObject) -> None:
    accepted = data.draw(values(structural_schema(definition.resource)))
    accepted |= {"apiVersion": definition.api_version, "kind": definition.kind, "metadata": {"name": "x"}}
    read = msgspec.convert(accepted, definition.resource)
    written = msgspec.json.encode(read)
    assert msgspec.json.decode(written, type=definition.resource) == read


def filled(schema: Schema, value: Any) -> Any:
    """`value` with the defaults that the API server adds."""
    if schema["type"] != "object" or "properties" not in schema:
        return value
    defaults = {name: child["default"] for name, child in schema["properties"].items() if "default" in child}
    return {name: filled(schema["properties"][name], each) for name, each in (defaults | value).items()}


@by_kind
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_defaults_of_the_api_server_are_those_of_the_structures(definition: Definition, data: st.DataObject) -> None:
    schema = structural_schema(definition.resource)["properties"]["spec"]
    spec_type = definition.resource.__annotations__["spec"]
    sent = data.draw(values(schema))
    assert msgspec.convert(filled(schema, sent), spec_type) == msgspec.convert(sent, spec_type)


class Colour(DocumentedEnum):
    """What colour it has."""

    RED = "Red", "like a tomato"
    BLUE = "Blue", "like the sky"


class Shape(Fields, frozen=True, kw_only=True):
    """A shape."""

    corners: Annotated[int, Meta(ge=3, le=8)] = 4
    """How many corners
    it has."""

    colour: Colour = Colour.BLUE
    """How it is filled."""


class DrawingSpec(Fields, frozen=True, kw_only=True):
    """What is drawn."""

    RULES = (Rule("self.title != ''", "a drawing needs a title"),)

    title: Annotated[str, Meta(max_length=20)]
    """What it is called."""

    frame: Shape = Shape()


class Drawing(CustomResource, frozen=True, kw_only=True):
    """A drawing."""

    api_version: Literal["test/v1alpha1"] = always("test/v1alpha1")
    kind: Literal["Drawing"] = always("Drawing")
    spec: DrawingSpec


def test_schema_of_a_small_kind() -> None:
    frame = {
        "description": "A shape.",
        "type": "object",
        "properties": {
            "corners": {
                "description": "How many corners it has.",
                "type": "integer",
                "format": "int64",
                "minimum": 3,
                "maximum": 8,
                "default": 4,
            },
            "colour": {
                "description": "How it is filled.\n- Red: like a tomato\n- Blue: like the sky",
                "type": "string",
                "enum": ["Red", "Blue"],
                "default": "Blue",
            },
        },
        "default": {},
    }
    assert structural_schema(Drawing) == {
        "type": "object",
        "description": "A drawing.",
        "required": ["spec"],
        "properties": {
            "spec": {
                "description": "What is drawn.",
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"description": "What it is called.", "type": "string", "maxLength": 20},
                    "frame": frame,
                },
                "x-kubernetes-validations": [{"rule": "self.title != ''", "message": "a drawing needs a title"}],
            }
        },
    }


class Undocumented(CustomResource, frozen=True, kw_only=True):
    """A kind with a field that says nothing."""

    spec: int


class Ambiguous(CustomResource, frozen=True, kw_only=True):
    """A kind with a field that can be two things."""

    spec: int | str
    """This or that."""


class Unbounded(CustomResource, frozen=True, kw_only=True):
    """A kind with a field that can be anything."""

    spec: Any
    """Anything."""


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (Undocumented, "Undocumented.spec is not documented"),
        (Ambiguous, "more than one type"),
        (Unbounded, "no structural schema"),
    ],
)
def test_what_a_structural_schema_cannot_say_is_an_error(resource: type[CustomResource], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        structural_schema(resource)
