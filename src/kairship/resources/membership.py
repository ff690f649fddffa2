"""`Membership`: a cluster that belongs to an instance.

It has the name of the cluster, so the API server itself ensures that a cluster is in one instance only. Deleting it
removes the cluster from the instance; a finalizer keeps the object until that is done.
"""

import datetime as dt
from typing import Annotated, ClassVar, Literal

from kairship.resources.cluster import LONGEST_NAME, VIRTUAL_PREFIX
from kairship.resources.condition import Condition, conditions_of
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import Rule, immutable, named_by_label
from kairship.resources.schema.scalars import Count, Label, Uid


class OnRemove(DocumentedEnum):
    """What happens to the workloads in a cluster that leaves."""

    DELETE = "Delete", "Karmada deletes them from the cluster"
    KEEP = "Keep", "they continue to run, and Karmada no longer manages them"


class MembershipPhase(DocumentedEnum):
    """What a membership is doing, in one word."""

    PENDING = "Pending", "it waits for the cluster or the instance"
    JOINING = "Joining", "the cluster is being joined"
    JOINED = "Joined", "the cluster belongs to the instance"
    LEAVING = "Leaving", "the cluster is being removed from the instance"
    FAILED = "Failed", "the cluster cannot join; its conditions say why"


class MembershipReason(DocumentedEnum):
    """Why a condition of a membership has its status."""

    JOINED = "Joined", "the instance has the cluster"
    JOINING = "Joining", "the cluster is being joined"
    CLUSTER_MISSING = "ClusterMissing", "no cluster of this name is registered with container management"
    CLUSTER_NOT_READY = "ClusterNotReady", "the cluster cannot be used; its own conditions say why"
    INSTANCE_MISSING = "InstanceMissing", "there is no instance of this name"
    INSTANCE_NOT_READY = "InstanceNotReady", "the instance cannot be used; its own conditions say why"
    DUPLICATE = "Duplicate", "the instance already has this cluster under the name in the message"
    CONTROL_PLANE = "ControlPlane", "it is the global cluster or a control plane of Karmada, and cannot join"
    JOIN_FAILED = "JoinFailed", "a step failed and is retried; the message says which and why"
    LEFT = "Left", "the instance no longer has the cluster"

    CURRENT = "Current", "Karmada uses the cluster's current credential"
    ROTATING = "Rotating", "Karmada is being given a new credential"
    ROTATION_FAILED = "RotationFailed", "the new credential did not work; the old one is kept as long as it is valid"

    ROTATED = "Rotated", "Karmada's controllers still use a replaced credential; restart its controller-manager"

    READY = "Ready", "Karmada can reach the cluster"
    NOT_READY = "NotReady", "Karmada cannot reach the cluster; the message is Karmada's own"
    NOT_OBSERVED = "NotObserved", "Karmada did not answer"

    REMOVING_WORKLOADS = "RemovingWorkloads", "Karmada removes the workloads that it placed in the cluster"
    CLEANING_UP = "CleaningUp", "Karmada's accounts are being removed from the cluster"
    CLUSTER_UNREACHABLE = "ClusterUnreachable", "the cluster does not answer; set spec.force to leave it as it is"


_R = MembershipReason


class MembershipCondition(ConditionType):
    """The conditions of a membership."""

    JOINED = (
        "Joined",
        Writer.MEMBERSHIP,
        "the instance has the cluster",
        (
            _R.JOINED,
            _R.JOINING,
            _R.CLUSTER_MISSING,
            _R.CLUSTER_NOT_READY,
            _R.INSTANCE_MISSING,
            _R.INSTANCE_NOT_READY,
            _R.DUPLICATE,
            _R.CONTROL_PLANE,
            _R.JOIN_FAILED,
            _R.LEFT,
        ),
    )
    CREDENTIALS_CURRENT = (
        "CredentialsCurrent",
        Writer.MEMBERSHIP,
        "Karmada uses the credential that container management has",
        (_R.CURRENT, _R.ROTATING, _R.ROTATION_FAILED, _R.CLUSTER_NOT_READY),
    )
    RESTART_REQUIRED = (
        "RestartRequired",
        Writer.MEMBERSHIP,
        "an administrator must restart Karmada, which still uses a replaced credential; removed after the restart",
        (_R.ROTATED, _R.NOT_OBSERVED),
    )
    READY = (
        "Ready",
        Writer.MEMBERSHIP,
        "Karmada finds the cluster ready",
        (_R.READY, _R.NOT_READY, _R.NOT_OBSERVED),
    )
    LEAVING = (
        "Leaving",
        Writer.MEMBERSHIP,
        "the cluster is being removed from the instance; the message says what the removal waits for",
        (_R.REMOVING_WORKLOADS, _R.CLEANING_UP, _R.CLUSTER_UNREACHABLE, _R.INSTANCE_NOT_READY),
    )


class MembershipSpec(Fields, frozen=True, kw_only=True):
    """The instance that the cluster belongs to."""

    RULES: ClassVar = (immutable("instance", "delete the membership and create another one"),)

    instance: Label
    """The instance that the cluster joins. Cannot change."""

    on_remove: OnRemove = OnRemove.DELETE
    """What happens to the workloads in the cluster when it leaves."""

    force: bool = False
    """Whether the cluster leaves even if it does not answer. Objects that Karmada created in it then stay there."""


class MembershipStatus(Fields, frozen=True, kw_only=True):
    """The observed state of the membership. The membership controller writes all of it."""

    observed_generation: Count = 0
    """The metadata.generation that this status was observed for."""

    phase: MembershipPhase | None = None
    """What the membership is doing."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(MembershipCondition)] = ()
    """Conditions of the membership."""

    karmada_cluster_uid: Uid | None = None
    """UID of the Cluster in Karmada. A Cluster of the same name with another UID is not managed by this membership."""

    joined_at: dt.datetime | None = None
    """When the cluster joined."""

    credentials_version: str = ""
    """The version of the cluster's Secret from which Karmada's credential was made."""


class Membership(CustomResource, frozen=True, kw_only=True):
    """A cluster that belongs to an instance. It has the name of the cluster."""

    RULES: ClassVar = (
        Rule(
            f"!self.metadata.name.startsWith('{VIRTUAL_PREFIX}')",
            "a virtual cluster stands for an instance and cannot join one",
        ),
        named_by_label("a membership, which is that of its cluster,", longest=LONGEST_NAME),
    )

    api_version: Literal["kairship.io/v1alpha1"] = always("kairship.io/v1alpha1")
    kind: Literal["Membership"] = always("Membership")
    spec: MembershipSpec
    status: MembershipStatus = MembershipStatus()


MEMBERSHIPS = Definition(
    resource=Membership,
    plural="memberships",
    short_names=("mbr",),
    conditions=MembershipCondition,
    columns=(
        Column("Instance", ".spec.instance", "The instance that the cluster belongs to."),
        Column("Phase", ".status.phase", "What the membership is doing."),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status', "Whether Karmada finds the cluster ready."),
        Column("Age", ".metadata.creationTimestamp", "Time since its creation.", type="date"),
        Column("On remove", ".spec.onRemove", "What happens to workloads when the cluster leaves.", wide=True),
        Column("Reason", '.status.conditions[?(@.type=="Joined")].reason', "Why it is joined or not.", wide=True),
    ),
    selectable=(".spec.instance",),
)
