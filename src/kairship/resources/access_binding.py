"""`AccessBinding`: who may do what where. It is the one input of the authoriser and of the RBAC inside the instances.

Global management flattens folders, workspaces and roles into bindings like this one, and delivers them. A delivery may
be repeated, late or out of order: `sequence` settles it. The API server itself refuses to go back, so replicas that
receive at the same moment need no agreement. Withdrawing sets `revoked` and does not delete: the object stays as a
gravestone, or an older delivery would bring the right back. It can be removed when deliveries of its age are refused
by their signature's own expiry.

It is not called Binding, because `kubectl get bindings` means another kind, of Kubernetes itself.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from .condition import Condition, ConditionType, conditions_of
from .definition import Column, Definition
from .documented import Documented, Writer
from .fields import CustomResource, Fields, always
from .rule import Rule, immutable
from .scalars import Count, Identifier, Label, Title, Uid, unique

Permission = Annotated[
    str, Meta(max_length=191, pattern=r"^[a-z0-9][-a-z0-9]{0,62}\.[a-z0-9][-a-z0-9]{0,62}\.[a-z0-9][-a-z0-9]{0,62}$")
]


class SubjectKind(Documented):
    """What kind of subject has the right."""

    USER = "User", "one person or machine"
    GROUP = "Group", "everybody in a group"


class ScopeLevel(Documented):
    """How much a binding covers."""

    PLATFORM = "Platform", "every instance, and the plane itself"
    INSTANCE = "Instance", "one instance with everything in it"
    NAMESPACE = "Namespace", "one namespace of one instance"
    WORKSPACE = "Workspace", "a workspace of global management: who is in it, not what it holds"


class OriginKind(Documented):
    """Where in global management somebody granted the right."""

    PLATFORM = "Platform", "for the whole platform"
    FOLDER = "Folder", "on a folder, and so on all workspaces below it"
    WORKSPACE = "Workspace", "on a workspace that holds the instance or the namespace"
    RESOURCE = "Resource", "on the instance itself"


class AccessBindingReason(Documented):
    """Why a condition of a binding has its status."""

    APPLIED = "Applied", "the RBAC that the binding means is in place"
    APPLYING = "Applying", "the RBAC is being written"
    WITHDRAWN = "Withdrawn", "the binding is revoked and its RBAC is gone"
    WITHDRAWING = "Withdrawing", "the binding is revoked and its RBAC is being removed"
    NOT_NEEDED = "NotNeeded", "the binding means no RBAC there"
    INSTANCE_MISSING = "InstanceMissing", "there is no instance with this name and UID"
    INSTANCE_NOT_READY = "InstanceNotReady", "the instance cannot be written to; its own conditions say why"
    SOME_PENDING = "SomePending", "some member clusters do not have it yet; the message names them"


_R = AccessBindingReason


class AccessBindingCondition(ConditionType):
    """What can be the case with a binding."""

    APPLIED = (
        "Applied",
        Writer.ACCESS,
        "the instance has the RBAC that the binding means",
        (
            _R.APPLIED,
            _R.APPLYING,
            _R.WITHDRAWN,
            _R.WITHDRAWING,
            _R.NOT_NEEDED,
            _R.INSTANCE_MISSING,
            _R.INSTANCE_NOT_READY,
        ),
    )
    MEMBERS_APPLIED = (
        "MembersApplied",
        Writer.ACCESS,
        "the member clusters have the RBAC that the binding means",
        (_R.APPLIED, _R.SOME_PENDING, _R.WITHDRAWN, _R.NOT_NEEDED, _R.INSTANCE_NOT_READY),
    )


def name_inside(kind: SubjectKind, identifier: str) -> str:
    """What a user or group is called inside instances and their members. Nothing of ours is ever called `system:`."""
    return f"kairship:{kind.value.lower()}:{identifier}"


MOST_MEMBERS = 10_000
"""Of a group that are named in a binding. Whoever is beyond it has the rights of the group in the instance, but does
not get through to its members: an object must fit into etcd."""


class Subject(Fields, frozen=True, kw_only=True):
    """Who has the right."""

    kind: SubjectKind
    """Whether it is a user or a group."""

    id: Identifier
    """Its identifier in global management. Inside an instance it is kairship:user:<id> or kairship:group:<id>."""


class Role(Fields, frozen=True, kw_only=True):
    """The role that was bound, for people. What it allows is in `permissions`."""

    id: Identifier
    """Its identifier in global management."""

    display_name: Title = ""
    """What people call it."""


class Scope(Fields, frozen=True, kw_only=True):
    """Where the right holds."""

    RULES: ClassVar = (
        Rule(
            "(self.level in ['Instance', 'Namespace']) == has(self.instance) "
            "&& has(self.instance) == has(self.instanceUid)",
            "instance and instanceUid are required with level Instance and Namespace, and only with them",
        ),
        Rule("(self.level == 'Namespace') == has(self.namespace)", "namespace is required with level Namespace only"),
        Rule("(self.level == 'Workspace') == has(self.workspace)", "workspace is required with level Workspace only"),
    )

    # Stated, not inferred: a field that got lost on the way must not turn one namespace into everything.
    level: ScopeLevel
    """How much it covers."""

    instance: Label | None = None
    """Name of the instance."""

    instance_uid: Uid | None = None
    """UID of the instance. Rights do not pass on to a later instance of the same name."""

    namespace: Label | None = None
    """Name of the namespace in the instance, and in its member clusters."""

    workspace: Identifier | None = None
    """Identifier of the workspace in global management."""


class Origin(Fields, frozen=True, kw_only=True):
    """Where in global management somebody granted the right."""

    kind: OriginKind
    """What it was granted on."""

    id: Identifier | None = None
    """Its identifier there."""

    display_name: Title = ""
    """What people call it."""


class AccessBindingSpec(Fields, frozen=True, kw_only=True):
    """Who may do what where."""

    RULES: ClassVar = (
        immutable("subject", "another subject has another binding"),
        immutable("scope", "another scope has another binding"),
        Rule(
            "self.sequence > oldSelf.sequence || self == oldSelf",
            "sequence must increase with every change: what is stored is newer than this",
        ),
    )

    subject: Subject
    """Who has the right. Cannot change."""

    # Karmada lets somebody through to a member only if the person is named, and not just the groups.
    members: Annotated[tuple[Identifier, ...], unique(max_length=MOST_MEMBERS)] = ()
    """If the subject is a group: the users in it, by whose names they are let through to member clusters. Nobody has a
    right by it."""

    role: Role
    """The role that was bound, for people."""

    permissions: Annotated[tuple[Permission, ...], unique(max_length=512)] = ()
    """What the role allows, as <product>.<resource type>.<action>. This list decides, not the name of the role."""

    scope: Scope
    """Where the right holds. Cannot change."""

    origin: Origin
    """Where in global management somebody granted it."""

    sequence: Annotated[int, Meta(ge=1)]
    """The position of this change among all changes of global management. It never goes back."""

    revoked: bool = False
    """Whether the right was withdrawn. The object stays for a while, so that a late delivery cannot bring it back."""


class AccessBindingStatus(Fields, frozen=True, kw_only=True):
    """Where the binding is in effect. All of it is written by the webhook controller of global management."""

    observed_generation: Count = 0
    """The metadata.generation whose RBAC is in place."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(AccessBindingCondition)] = ()
    """What is the case with the binding, aspect by aspect."""


class AccessBinding(CustomResource, frozen=True, kw_only=True):
    """Who may do what where, as global management delivered it. Written by the plane, not by people."""

    api_version: Literal["ghippo.io/v1alpha1"] = always("ghippo.io/v1alpha1")
    kind: Literal["AccessBinding"] = always("AccessBinding")
    spec: AccessBindingSpec
    status: AccessBindingStatus = AccessBindingStatus()


ACCESS_BINDINGS = Definition(
    resource=AccessBinding,
    plural="accessbindings",
    short_names=("ab",),
    conditions=AccessBindingCondition,
    columns=(
        Column("Kind", ".spec.subject.kind", "Whether the subject is a user or a group."),
        Column("Subject", ".spec.subject.id", "Who has the right."),
        Column("Role", ".spec.role.id", "The role that was bound."),
        Column("Level", ".spec.scope.level", "How much it covers."),
        Column("Instance", ".spec.scope.instance", "The instance that it is about."),
        Column("Namespace", ".spec.scope.namespace", "The namespace that it is about."),
        Column("Revoked", ".spec.revoked", "Whether it was withdrawn.", type="boolean"),
        Column("Applied", '.status.conditions[?(@.type=="Applied")].status', "Whether its RBAC is in place."),
        Column("Age", ".metadata.creationTimestamp", "Time since it was delivered.", type="date"),
        Column("Sequence", ".spec.sequence", "Position among all changes.", type="integer", wide=True),
    ),
    selectable=(".spec.scope.instance", ".spec.subject.id"),
)
