"""`Registration`: a resource that global management knows, so that roles can be bound to it and workspaces can hold it.

The name is made of what it registers, so the API server itself keeps one registration for each.
"""

from typing import Annotated, ClassVar, Literal

from .condition import Condition, ConditionType, conditions_of
from .definition import Column, Definition
from .documented import Documented, Writer
from .fields import CustomResource, Fields, always
from .rule import Rule, immutable
from .scalars import Count, Identifier, Label, Title, Uid, unique

MOST_NAMESPACES = 4096
"""As many fit into an object with room to spare."""


class RegistrationReason(Documented):
    """Why a condition of a registration or of a product has its status."""

    REGISTERED = "Registered", "global management knows it in its present form"
    PENDING = "Pending", "global management has not looked at it yet"
    REFUSED = "Refused", "global management does not accept it; the message says why"
    PRODUCT_MISSING = "ProductMissing", "its product, or this type of resource in it, is not known"


class RegistrationCondition(ConditionType):
    """What can be the case with a registration."""

    REGISTERED = (
        "Registered",
        Writer.GHIPPO,
        "global management knows the resource",
        (
            RegistrationReason.REGISTERED,
            RegistrationReason.PENDING,
            RegistrationReason.REFUSED,
            RegistrationReason.PRODUCT_MISSING,
        ),
    )


class Parent(Fields, frozen=True, kw_only=True):
    """The resource of the same product that this one is a part of."""

    resource_type: Label
    """Its type: instance."""

    name: Label
    """Its name."""


class RegistrationSpec(Fields, frozen=True, kw_only=True):
    """What is registered."""

    # The rest is in the name, which cannot change either.
    RULES: ClassVar = (
        immutable("uid", "a resource that was made anew is another one; delete this registration first"),
        immutable("parent", "register another resource under another name", optional=True),
    )

    product: Label
    """The product that has the resource: kairship."""

    resource_type: Label
    """One of the resource types of the product: instance, namespace."""

    resource: Label
    """Name of the resource."""

    uid: Uid
    """UID of the resource. Rights do not pass on to a later resource of the same name."""

    display_name: Title = ""
    """What people call it."""

    parent: Parent | None = None
    """What it is a part of: of a namespace, its instance."""


class WorkspaceReference(Fields, frozen=True, kw_only=True):
    """A workspace of global management."""

    id: int
    """Its number."""

    name: str
    """Its name."""


class RegistrationStatus(Fields, frozen=True, kw_only=True):
    """What global management made of it. All of it is written by global management."""

    observed_generation: Count = 0
    """The metadata.generation that this was found for."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(RegistrationCondition)] = ()
    """What is the case with the registration, aspect by aspect."""

    id: Identifier | None = None
    """What global management calls the resource."""

    workspace: WorkspaceReference | None = None
    """The workspace that holds the resource."""

    namespaces: Annotated[tuple[Label, ...], unique(max_length=MOST_NAMESPACES)] = ()
    """Of an instance: those of its namespaces that a workspace holds. They are to be registered too."""


class Registration(CustomResource, frozen=True, kw_only=True):
    """A resource that global management knows. Its name is `<product>.<type>.<resource>`, or for a part of something
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
        Column("Product", ".spec.product", "The product that has the resource."),
        Column("Type", ".spec.resourceType", "Type of the resource."),
        Column("Resource", ".spec.resource", "Name of the resource."),
        Column("Workspace", ".status.workspace.name", "The workspace that holds it."),
        Column("Registered", '.status.conditions[?(@.type=="Registered")].status', "Whether it is known."),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
    ),
    selectable=(".spec.product", ".spec.resourceType"),
)
