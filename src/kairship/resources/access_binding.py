"""`AccessBinding`: the permissions of a subject in a scope. It is the only input of the authoriser and of the RBAC
inside the instances.

Global management flattens folders, workspaces and roles into access bindings, and delivers them. A delivery may be
repeated, late or out of order; `sequence` decides which is newer. The API server itself refuses a lower sequence, so
replicas that receive deliveries at the same time need no coordination. A revocation sets `revoked` and does not delete
the object: it stays as a tombstone, because an older delivery would otherwise restore the permissions. It can be
removed when deliveries of its age are refused because their signatures have expired.

It is not called Binding, because `kubectl get bindings` means a kind of Kubernetes itself.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from kairship.resources.condition import Condition, conditions_of
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import Rule, immutable
from kairship.resources.schema.scalars import Count, Identifier, Label, Title, Uid, unique

Permission = Annotated[
    str, Meta(max_length=191, pattern=r"^[a-z0-9][-a-z0-9]{0,62}\.[a-z0-9][-a-z0-9]{0,62}\.[a-z0-9][-a-z0-9]{0,62}$")
]


class SubjectKind(DocumentedEnum):
    """The kind of a subject."""

    USER = "User", "a person or a machine"
    GROUP = "Group", "all users in a group"


class ScopeLevel(DocumentedEnum):
    """The level of a scope."""

    PLATFORM = "Platform", "every instance, and the plane itself"
    INSTANCE = "Instance", "one instance with everything in it"
    NAMESPACE = "Namespace", "one namespace of one instance"
    WORKSPACE = "Workspace", "a workspace of global management: its members, not the resources in it"
    CLUSTER = "Cluster", "one cluster of container management, whether or not it has joined an instance"


class OriginKind(DocumentedEnum):
    """Where in global management the role was bound."""

    PLATFORM = "Platform", "on the whole platform"
    FOLDER = "Folder", "on a folder, and so on all workspaces below it"
    WORKSPACE = "Workspace", "on a workspace that contains the instance or the namespace"
    RESOURCE = "Resource", "on the instance itself"


class AccessBindingReason(DocumentedEnum):
    """Why a condition of a binding has its status."""

    APPLIED = "Applied", "the RBAC of the binding is in place"
    APPLYING = "Applying", "the RBAC is being written"
    WITHDRAWN = "Withdrawn", "the binding is revoked and its RBAC is gone"
    WITHDRAWING = "Withdrawing", "the binding is revoked and its RBAC is being removed"
    NOT_NEEDED = "NotNeeded", "the binding needs no RBAC there"
    INSTANCE_MISSING = "InstanceMissing", "there is no instance with this name and UID"
    INSTANCE_NOT_READY = "InstanceNotReady", "the instance cannot be written to; its own conditions say why"
    SOME_PENDING = "SomePending", "some member clusters do not have it yet; the message names them"


_R = AccessBindingReason


class AccessBindingCondition(ConditionType):
    """The conditions of a binding."""

    APPLIED = (
        "Applied",
        Writer.ACCESS,
        "the instance has the RBAC of the binding",
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
        "the member clusters have the RBAC of the binding",
        (_R.APPLIED, _R.SOME_PENDING, _R.WITHDRAWN, _R.NOT_NEEDED, _R.INSTANCE_NOT_READY),
    )


def name_inside(kind: SubjectKind, identifier: str) -> str:
    """The name of a user or group inside instances and their members. It never begins with `system:`."""
    return f"kairship:{kind.value.lower()}:{identifier}"


MOST_MEMBERS = 10_000
"""The limit of group members that are named in a binding, because an object must fit into etcd. A user beyond it has
the permissions of the group in the instance, but no access to its member clusters."""


class Subject(Fields, frozen=True, kw_only=True):
    """The user or group that has the permissions."""

    kind: SubjectKind
    """Whether it is a user or a group."""

    id: Identifier
    """Identifier in global management. Inside an instance the name is kairship:user:<id> or kairship:group:<id>."""


class Role(Fields, frozen=True, kw_only=True):
    """The role that was bound, for people. `permissions` has what it allows."""

    id: Identifier
    """Identifier of the role in global management."""

    display_name: Title = ""
    """Display name of the role."""


class Scope(Fields, frozen=True, kw_only=True):
    """Where the permissions apply."""

    RULES: ClassVar = (
        Rule(
            "(self.level in ['Instance', 'Namespace']) == has(self.instance) "
            "&& has(self.instance) == has(self.instanceUid)",
            "instance and instanceUid are required with level Instance and Namespace, and only with them",
        ),
        Rule("(self.level == 'Namespace') == has(self.namespace)", "namespace is required with level Namespace only"),
        Rule("(self.level == 'Workspace') == has(self.workspace)", "workspace is required with level Workspace only"),
        Rule(
            "(self.level == 'Cluster') == has(self.cluster) && has(self.cluster) == has(self.clusterUid)",
            "cluster and clusterUid are required with level Cluster, and only with it",
        ),
    )

    # Stated and not inferred: a field that is lost in transport must not turn one namespace into everything.
    level: ScopeLevel
    """The level of the scope."""

    instance: Label | None = None
    """Name of the instance."""

    instance_uid: Uid | None = None
    """UID of the instance. Permissions do not carry over to a later instance of the same name."""

    namespace: Label | None = None
    """Name of the namespace in the instance, and in its member clusters."""

    workspace: Identifier | None = None
    """Identifier of the workspace in global management."""

    cluster: Label | None = None
    """Name of the cluster in container management."""

    cluster_uid: Uid | None = None
    """UID of the cluster. Permissions do not carry over to a later cluster of the same name."""


class Origin(Fields, frozen=True, kw_only=True):
    """Where in global management the role was bound."""

    kind: OriginKind
    """The kind of the object that it was bound on."""

    id: Identifier | None = None
    """Identifier of that object in global management."""

    display_name: Title = ""
    """Display name of that object."""


class AccessBindingSpec(Fields, frozen=True, kw_only=True):
    """The permissions of a subject in a scope."""

    RULES: ClassVar = (
        immutable("subject", "another subject has another binding"),
        immutable("scope", "another scope has another binding"),
        Rule(
            "self.sequence > oldSelf.sequence || self == oldSelf",
            "sequence must increase with every change: what is stored is newer than this",
        ),
    )

    subject: Subject
    """The user or group that has the permissions. Cannot change."""

    # Karmada's proxy admits a user to a member only if the user is named, and not just one of their groups.
    members: Annotated[tuple[Identifier, ...], unique(max_length=MOST_MEMBERS)] = ()
    """If the subject is a group: the users in it. They are named so that the instance forwards them to member clusters;
    the list itself grants no permission."""

    role: Role
    """The role that was bound, for people."""

    permissions: Annotated[tuple[Permission, ...], unique(max_length=512)] = ()
    """The permissions, as <product>.<resource type>.<action>. This list counts, not the name of the role."""

    scope: Scope
    """Where the permissions apply. Cannot change."""

    origin: Origin
    """Where in global management the role was bound."""

    sequence: Annotated[int, Meta(ge=1)]
    """The position of this change among all changes of global management. It never decreases."""

    revoked: bool = False
    """Whether the permissions were revoked. The object is kept for a while, or a late delivery would restore them."""


class AccessBindingStatus(Fields, frozen=True, kw_only=True):
    """Where the binding is in effect. The webhook controller of global management writes all of it."""

    observed_generation: Count = 0
    """The metadata.generation whose RBAC is in place."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(AccessBindingCondition)] = ()
    """Conditions of the binding."""


class AccessBinding(CustomResource, frozen=True, kw_only=True):
    """The permissions of a subject in a scope, as delivered by global management. The plane writes it, users do not."""

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
        Column("Subject", ".spec.subject.id", "The user or group."),
        Column("Role", ".spec.role.id", "The role that was bound."),
        Column("Level", ".spec.scope.level", "The level of the scope."),
        Column("Instance", ".spec.scope.instance", "The instance of the scope."),
        Column("Namespace", ".spec.scope.namespace", "The namespace of the scope."),
        Column("Revoked", ".spec.revoked", "Whether it was revoked.", type="boolean"),
        Column("Applied", '.status.conditions[?(@.type=="Applied")].status', "Whether its RBAC is in place."),
        Column("Age", ".metadata.creationTimestamp", "Time since it was delivered.", type="date"),
        Column("Sequence", ".spec.sequence", "Position among all changes.", type="integer", wide=True),
    ),
    selectable=(".spec.scope.instance", ".spec.subject.id"),
)
