"""Turns the structures into OpenAPI v3 schemas for CustomResourceDefinitions: structural, closed and documented.

Types, bounds and defaults come from the annotations, documentation from docstrings, and rules from `RULES`. A field
without documentation is an error, so that `kubectl explain` describes every field.
"""

from typing import Any

from msgspec import inspect as types

from kairship.resources.schema.documentation import class_doc, field_docs
from kairship.resources.schema.documented_enum import DocumentedEnum
from kairship.resources.schema.fields import CustomResource, Fields

Schema = dict[str, Any]

# The API server has schemas of its own for these.
_STANDARD = frozenset({"api_version", "kind", "metadata"})


class SchemaError(TypeError):
    """The structures contain something that a structural schema cannot express."""


def structural_schema(resource: type[CustomResource]) -> Schema:
    """The schema of a kind. Defaults are for fields that users write, so `status` has none."""
    info = types.type_info(resource)
    assert isinstance(info, types.StructType)  # noqa: S101 -- a CustomResource is a Struct
    own = {field.encode_name: field for field in info.fields if field.name not in _STANDARD}
    properties = {
        name: _described(resource, field, _schema(field.type, with_defaults=name == "spec"))
        for name, field in own.items()
    }
    schema: Schema = {
        "type": "object",
        "description": class_doc(resource),
        "required": [name for name, field in own.items() if field.required],
        "properties": properties,
    }
    return schema | _rules(resource)


def _schema(info: types.Type, *, with_defaults: bool) -> Schema:
    match info:
        case types.Metadata(type=inner, extra_json_schema=extra):
            return _schema(inner, with_defaults=with_defaults) | (extra or {})
        case types.UnionType():
            [inner] = _alternatives(info)
            return _schema(inner, with_defaults=with_defaults)
        case types.StructType(cls=cls):
            return _object(cls, info, with_defaults=with_defaults)
        case types.VarTupleType(item_type=item):
            items = _schema(item, with_defaults=with_defaults)
            # Written even though it is the API server's default, so that the ownership of a list is explicit.
            listed: Schema = {"type": "array", "x-kubernetes-list-type": "atomic", "items": items}
            return listed | _bounds(info, min_length="minItems", max_length="maxItems")
        case types.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, with_defaults=with_defaults)}
        case types.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case types.LiteralType(values=values):
            return {"type": "string", "enum": list(values)}
        case types.StrType():
            lengths = _bounds(info, min_length="minLength", max_length="maxLength", pattern="pattern")
            return {"type": "string"} | lengths
        case types.IntType():
            return {"type": "integer", "format": "int64"} | _bounds(info, ge="minimum", le="maximum")
        case types.BoolType():
            return {"type": "boolean"}
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
    raise SchemaError(f"{info} has no structural schema")


def _object(cls: type, info: types.StructType, *, with_defaults: bool) -> Schema:
    schema: Schema = {"type": "object", "description": class_doc(cls)}
    required = sorted(field.encode_name for field in info.fields if field.required)
    if required:
        schema["required"] = required
    schema["properties"] = {
        field.encode_name: _described(cls, field, _schema(field.type, with_defaults=with_defaults))
        | (_default(field) if with_defaults else {})
        for field in info.fields
    }
    return schema | _rules(cls)


def _described(cls: type, field: types.Field, schema: Schema) -> Schema:
    """The schema of a field with its documentation: its own or that of its type, and the meanings of its values."""
    own, of_type = field_docs(cls).get(field.name), schema.get("description")
    # The description of a list's entries comes below the description of the field itself.
    paragraphs = [own, of_type] if schema["type"] == "array" else [own or of_type]
    text = "\n".join(paragraph for paragraph in paragraphs if paragraph)
    if not text:
        raise SchemaError(f"{cls.__name__}.{field.name} is not documented")
    return {"description": text + _meanings(field.type)} | {k: v for k, v in schema.items() if k != "description"}


def _meanings(info: types.Type) -> str:
    if isinstance(info, types.UnionType):
        [info] = _alternatives(info)
    if isinstance(info, types.EnumType) and issubclass(info.cls, DocumentedEnum):
        return "\n" + "\n".join(f"- {member.value}: {member.meaning}" for member in info.cls)
    return ""


def _default(field: types.Field) -> Schema:
    """A default that the API server fills in, so that an object shows the settings that are in effect."""
    match field.default:
        case bool() | int():
            return {"default": field.default}
        case DocumentedEnum(value=value):
            return {"default": value}
        case Fields():
            return {"default": {}}
    return {}


def _rules(cls: type) -> Schema:
    rules = cls.RULES if issubclass(cls, Fields) else ()
    if not rules:
        return {}
    return {
        "x-kubernetes-validations": [{"rule": rule.expression, "message": rule.message} for rule in rules],
    }


def _bounds(info: types.Type, **names: str) -> Schema:
    found = {name: getattr(info, attribute) for attribute, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _alternatives(union: types.UnionType) -> list[types.Type]:
    """The types that a value can have if it is present. A structural schema allows only one."""
    present = [each for each in union.types if not isinstance(each, types.NoneType)]
    if len(present) != 1:
        raise SchemaError(f"{union} is more than one type")
    return present
