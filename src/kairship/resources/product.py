"""`Product`: the catalogue of what a product has that roles can be about. There is one for kairship itself.

A custom role of global management is a set of permissions `<product>.<resource type>.<action>` of these catalogues.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from .condition import Condition, ConditionType, conditions_of
from .definition import Column, Definition
from .documented import Writer
from .fields import CustomResource, Fields, always
from .registration import RegistrationReason
from .rule import named_by_label
from .scalars import Count, Label, Title, keyed_by


class ProductCondition(ConditionType):
    """What can be the case with a product."""

    REGISTERED = (
        "Registered",
        Writer.GHIPPO,
        "global management offers the permissions of this catalogue",
        (RegistrationReason.REGISTERED, RegistrationReason.PENDING, RegistrationReason.REFUSED),
    )


class Action(Fields, frozen=True, kw_only=True):
    """Something that a role can allow."""

    name: Label
    """Name of the action, the last part of the permission: view, edit, delete …"""

    description: Annotated[str, Meta(max_length=512)]
    """What somebody with this permission can do."""


class ResourceType(Fields, frozen=True, kw_only=True):
    """A type of resource and what can be done with it."""

    name: Label
    """Name of the type, the middle part of the permission: instance, policy, secret …"""

    display_name: Title = ""
    """What people call it."""

    actions: Annotated[tuple[Action, ...], keyed_by("name", min_length=1, max_length=32)]
    """What can be done with it."""


class ProductSpec(Fields, frozen=True, kw_only=True):
    """The catalogue."""

    display_name: Title = ""
    """What people call the product."""

    resource_types: Annotated[tuple[ResourceType, ...], keyed_by("name", min_length=1, max_length=128)]
    """The types of resources that permissions are about."""


class ProductStatus(Fields, frozen=True, kw_only=True):
    """What global management made of it. All of it is written by global management."""

    observed_generation: Count = 0
    """The metadata.generation that this was found for."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(ProductCondition)] = ()
    """What is the case with the product, aspect by aspect."""


class Product(CustomResource, frozen=True, kw_only=True):
    """What a product has that roles can be about."""

    RULES: ClassVar = (named_by_label("a product", longest=63),)

    api_version: Literal["ghippo.io/v1alpha1"] = always("ghippo.io/v1alpha1")
    kind: Literal["Product"] = always("Product")
    spec: ProductSpec
    status: ProductStatus = ProductStatus()


PRODUCTS = Definition(
    resource=Product,
    plural="products",
    short_names=("prod",),
    conditions=ProductCondition,
    columns=(
        Column("Title", ".spec.displayName", "What people call the product."),
        Column("Registered", '.status.conditions[?(@.type=="Registered")].status', "Whether it is known."),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
    ),
)
