"""How a kind is served: its names, its columns in `kubectl get`, and its selectable fields."""

from typing import Literal

import msgspec

from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.fields import CustomResource

VERSION = "v1alpha1"


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. A `wide` column is shown only with `-o wide`."""

    name: str
    path: str
    description: str
    type: Literal["string", "integer", "boolean", "date"] = "string"
    wide: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A kind as the API server serves it. All our kinds are cluster-scoped and have the subresource `status`."""

    resource: type[CustomResource]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]
    conditions: type[ConditionType]
    selectable: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.resource.__name__

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        return _constant(self.resource, "api_version")

    @property
    def group(self) -> str:
        return self.api_version.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of its CustomResourceDefinition: `instances.kairship.io`."""
        return f"{self.plural}.{self.group}"


def _constant(resource: type[CustomResource], field: str) -> str:
    [found] = [info for info in msgspec.structs.fields(resource) if info.name == field]
    return str(found.default_factory())
