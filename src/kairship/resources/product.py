"""`Product`: the catalogue of the permissions of a product. There is one for kairship itself.

A custom role of global management is a set of permissions `<product>.<resource type>.<action>` from these catalogues.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from kairship.resources.condition import Condition, conditions_of
from kairship.resources.registration import RegistrationReason
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import Writer
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import named_by_label
from kairship.resources.schema.scalars import Count, Label, Title, keyed_by


class ProductCondition(ConditionType):
    """The conditions of a product."""

    REGISTERED = (
        "Registered",
        Writer.GHIPPO,
        "global management offers the permissions of this catalogue",
        (RegistrationReason.REGISTERED, RegistrationReason.PENDING, RegistrationReason.REFUSED),
    )


class Action(Fields, frozen=True, kw_only=True):
    """An action that a role can allow."""

    name: Label
    """Name of the action, the last part of the permission: view, edit, delete …"""

    description: Annotated[str, Meta(max_length=512)]
    """What a user with this permission can do."""


class ResourceType(Fields, frozen=True, kw_only=True):
    """A type of resource and its actions."""

    name: Label
    """Name of the type, the middle part of the permission: instance, policy, secret …"""

    display_name: Title = ""
    """Display name of the type."""

    actions: Annotated[tuple[Action, ...], keyed_by("name", min_length=1, max_length=32)]
    """The actions that roles can allow."""


class ProductSpec(Fields, frozen=True, kw_only=True):
    """The catalogue of permissions."""

    display_name: Title = ""
    """Display name of the product."""

    resource_types: Annotated[tuple[ResourceType, ...], keyed_by("name", min_length=1, max_length=128)]
    """The resource types of the product."""


class ProductStatus(Fields, frozen=True, kw_only=True):
    """The observed state of the product. Global management writes all of it."""

    observed_generation: Count = 0
    """The metadata.generation that this status was observed for."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(ProductCondition)] = ()
    """Conditions of the product."""


class Product(CustomResource, frozen=True, kw_only=True):
    """The catalogue of the permissions of a product."""

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
        Column("Title", ".spec.displayName", "Display name of the product."),
        Column("Registered", '.status.conditions[?(@.type=="Registered")].status', "Whether it is registered."),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
    ),
)
