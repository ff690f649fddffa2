"""Strings, numbers and small structures that several kinds share, with their bounds.

Every value that a rule uses is bounded, because the API server refuses rules whose cost it cannot estimate.
"""

from typing import Annotated, Any

from msgspec import Meta

from kairship.resources.schema.fields import Fields

Label = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""A DNS label: the name of an instance, a namespace, a backup."""

Subdomain = Annotated[str, Meta(min_length=1, max_length=253, pattern="^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
"""A DNS subdomain: the name of a Secret, or of most other objects."""

Uid = Annotated[str, Meta(min_length=1, max_length=64)]

Title = Annotated[str, Meta(max_length=128)]
"""A display name."""

Identifier = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9]([-._:@A-Za-z0-9]*[A-Za-z0-9])?$")]
"""An identifier that another system issued."""

KarmadaVersion = Annotated[str, Meta(max_length=64, pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$")]

Seconds = Annotated[int, Meta(ge=1, le=86400)]

Count = Annotated[int, Meta(ge=0)]

# Strings as in Kubernetes, so that they are exact: sums must not lose a byte to floating point.
Quantity = Annotated[
    str,
    Meta(
        max_length=64,
        pattern=r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    ),
]

Quantities = dict[str, Quantity]
"""Quantities by resource name: `cpu`, `memory`, `pods`, `nvidia.com/gpu`."""


class SecretReference(Fields, frozen=True, kw_only=True):
    """A Secret in the namespace `kairship-system`."""

    name: Subdomain
    """Name of the Secret."""


class ReadyCount(Fields, frozen=True, kw_only=True):
    """How many there are, and how many of them are ready."""

    total: Count
    """How many there are."""

    ready: Count
    """How many of them are ready."""


def unique(**bounds: Any) -> Meta:
    """A list that is a set. Several owners can add and remove single values."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "set"}, **bounds)


def keyed_by(*keys: str, **bounds: Any) -> Meta:
    """A list that is a map by these keys, so that several owners can each apply their own entries."""
    extra = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return Meta(extra_json_schema=extra, **bounds)
