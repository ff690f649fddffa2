"""`Registration`: registers a resource with global management, so that roles can be bound to it and workspaces can
contain it.

Its name is composed of what it registers, so the API server itself allows only one registration of each resource.
"""

from typing import Annotated, ClassVar, Literal

from kairship.resources.condition import Condition, conditions_of
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import Rule, immutable
from kairship.resources.schema.scalars import Count, Identifier, Label, Title, Uid, unique

MOST_NAMESPACES = 4096
"""The limit of namespaces in one object, which stays well below the size limit of etcd."""


class RegistrationReason(DocumentedEnum):
    """Why a condition of a registration or of a product has its status."""

    REGISTERED = "Registered", "global management has registered its current spec"
    PENDING = "Pending", "global management has not processed it yet"
    REFUSED = "Refused", "global management does not accept it; the message says why"
    PRODUCT_MISSING = "ProductMissing", "its product, or this resource type of the product, is not registered"


class RegistrationCondition(ConditionType):
    """The conditions of a registration."""

    REGISTERED = (
        "Registered",
        Writer.GHIPPO,
        "the resource is registered with global management",
        (
            RegistrationReason.REGISTERED,
            RegistrationReason.PENDING,
            RegistrationReason.REFUSED,
            RegistrationReason.PRODUCT_MISSING,
        ),
    )


class Parent(Fields, frozen=True, kw_only=True):
    """The resource of the same product that contains this one."""

    resource_type: Label
    """Its type: instance."""

    name: Label
    """Its name."""


class RegistrationSpec(Fields, frozen=True, kw_only=True):
    """The registered resource."""

    # The other fields are part of the name, which cannot change either.
    RULES: ClassVar = (
        immutable("uid", "a resource that was made anew is another one; delete this registration first"),
        immutable("parent", "register another resource under another name", optional=True),
    )

    product: Label
    """The product of the resource: kairship, kpanda."""

    resource_type: Label
    """A resource type of the product: instance, namespace; cluster."""

    resource: Label
    """Name of the resource."""

    uid: Uid
    """UID of the resource. Permissions do not carry over to a later resource of the same name."""

    display_name: Title = ""
    """Display name of the resource."""

    parent: Parent | None = None
    """The resource that contains it: for a namespace, its instance."""


class WorkspaceReference(Fields, frozen=True, kw_only=True):
    """A workspace of global management."""

    id: int
    """Its number."""

    name: str
    """Its name."""


class RegistrationStatus(Fields, frozen=True, kw_only=True):
    """The observed state of the registration. Global management writes all of it."""

    observed_generation: Count = 0
    """The metadata.generation that this status was observed for."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(RegistrationCondition)] = ()
    """Conditions of the registration."""

    id: Identifier | None = None
    """Identifier of the resource in global management."""

    workspace: WorkspaceReference | None = None
    """The workspace that contains the resource."""

    namespaces: Annotated[tuple[Label, ...], unique(max_length=MOST_NAMESPACES)] = ()
    """For an instance: its namespaces that are in a workspace. They have to be registered too."""


class Registration(CustomResource, frozen=True, kw_only=True):
    """A resource that is registered with global management. Its name is `<product>.<type>.<resource>`, or with a parent
    `<product>.<type>.<parent>.<resource>`."""

    RULES: ClassVar = (
        Rule(
            "self.metadata.name == self.spec.product + '.' + self.spec.resourceType + '.' "
            "+ (has(self.spec.parent) ? self.spec.parent.name + '.' : '') + self.spec.resource",
            "a registration is named <product>.<resourceType>.<resource>, or with a parent "
            "<product>.<resourceType>.<parent>.<resource>",
        ),
    )

    api_version: Literal["ghippo.io/v1alpha1"] = always("ghippo.io/v1alpha1")
    kind: Literal["Registration"] = always("Registration")
    spec: RegistrationSpec
    status: RegistrationStatus = RegistrationStatus()


REGISTRATIONS = Definition(
    resource=Registration,
    plural="registrations",
    short_names=("reg",),
    conditions=RegistrationCondition,
    columns=(
        Column("Product", ".spec.product", "The product of the resource."),
        Column("Type", ".spec.resourceType", "Type of the resource."),
        Column("Resource", ".spec.resource", "Name of the resource."),
        Column("Workspace", ".status.workspace.name", "The workspace that contains it."),
        Column("Registered", '.status.conditions[?(@.type=="Registered")].status', "Whether it is registered."),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
    ),
    selectable=(".spec.product", ".spec.resourceType"),
)
