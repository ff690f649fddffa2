"""`Membership`: a cluster that belongs to an instance.

It is named after the cluster, so the API server itself keeps a cluster in one instance. Deleting it takes the cluster
out of the instance; a finalizer keeps it until that is done.
"""

import datetime as dt
from typing import Annotated, ClassVar, Literal

from .cluster import LONGEST_NAME, VIRTUAL_PREFIX
from .condition import Condition, ConditionType, conditions_of
from .definition import Column, Definition
from .documented import Documented, Writer
from .fields import CustomResource, Fields, always
from .rule import Rule, immutable, named_by_label
from .scalars import Count, Label, Uid


class OnRemove(Documented):
    """What happens to the workloads in a cluster that leaves."""

    DELETE = "Delete", "they are deleted from the cluster, as Karmada does"
    KEEP = "Keep", "they stay and run on; nobody manages them any more"


class MembershipPhase(Documented):
    """What a membership is doing, in one word."""

    PENDING = "Pending", "it waits for the cluster or the instance"
    JOINING = "Joining", "the cluster is being joined"
    JOINED = "Joined", "the cluster belongs to the instance"
    LEAVING = "Leaving", "the cluster is being taken out"
    FAILED = "Failed", "the cluster cannot join; its conditions say why"


class MembershipReason(Documented):
    """Why a condition of a membership has its status."""

    JOINED = "Joined", "the instance has the cluster"
    JOINING = "Joining", "the cluster is being joined"
    CLUSTER_MISSING = "ClusterMissing", "container management has no cluster of this name"
    CLUSTER_NOT_READY = "ClusterNotReady", "the cluster cannot be used; its own conditions say why"
    INSTANCE_MISSING = "InstanceMissing", "there is no instance of this name"
    INSTANCE_NOT_READY = "InstanceNotReady", "the instance cannot be used; its own conditions say why"
    DUPLICATE = "Duplicate", "the instance has this cluster already under the name in the message"
    JOIN_FAILED = "JoinFailed", "a step failed and is tried again; the message says which and why"
    LEFT = "Left", "the instance does not have the cluster any more"

    CURRENT = "Current", "Karmada uses the cluster's current credential"
    ROTATING = "Rotating", "a new credential is being handed to Karmada"
    ROTATION_FAILED = "RotationFailed", "the new credential did not work; the old one is kept as long as it is valid"

    ROTATED = "Rotated", "Karmada's controllers hold a credential that was replaced; restart its controller-manager"

    READY = "Ready", "Karmada reaches the cluster"
    NOT_READY = "NotReady", "Karmada does not reach the cluster; the message is its own"
    NOT_OBSERVED = "NotObserved", "Karmada could not be asked"

    REMOVING_WORKLOADS = "RemovingWorkloads", "Karmada removes what it placed in the cluster"
    CLEANING_UP = "CleaningUp", "Karmada's accounts are being removed from the cluster"
    CLUSTER_UNREACHABLE = "ClusterUnreachable", "the cluster does not answer; set spec.force to leave it as it is"


_R = MembershipReason


class MembershipCondition(ConditionType):
    """What can be the case with a membership."""

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
        "Karmada must be restarted where we may not, because it keeps a replaced credential; gone when that is done",
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
        "the cluster is being taken out; says what that waits for",
        (_R.REMOVING_WORKLOADS, _R.CLEANING_UP, _R.CLUSTER_UNREACHABLE, _R.INSTANCE_NOT_READY),
    )


class MembershipSpec(Fields, frozen=True, kw_only=True):
    """Where the cluster belongs."""

    RULES: ClassVar = (immutable("instance", "delete the membership and create another one"),)

    instance: Label
    """The instance that the cluster joins. Cannot change."""

    on_remove: OnRemove = OnRemove.DELETE
    """What happens to the workloads in the cluster when it leaves."""

    force: bool = False
    """Whether the cluster leaves although it does not answer. What Karmada made in it then stays there."""


class MembershipStatus(Fields, frozen=True, kw_only=True):
    """How far it is. All of it is written by the membership controller."""

    observed_generation: Count = 0
    """The metadata.generation that this was found for."""

    phase: MembershipPhase | None = None
    """What the membership is doing."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(MembershipCondition)] = ()
    """What is the case with the membership, aspect by aspect."""

    karmada_cluster_uid: Uid | None = None
    """UID of the Cluster in Karmada. Another one of the same name is not ours."""

    joined_at: dt.datetime | None = None
    """When the cluster joined."""

    credentials_version: str = ""
    """The version of the cluster's Secret from which Karmada's credential was made."""


class Membership(CustomResource, frozen=True, kw_only=True):
    """A cluster that belongs to an instance. It is named after the cluster."""

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
        Column("Age", ".metadata.creationTimestamp", "Time since it was asked for.", type="date"),
        Column("On remove", ".spec.onRemove", "What happens to workloads when the cluster leaves.", wide=True),
        Column("Reason", '.status.conditions[?(@.type=="Joined")].reason', "Why it is joined or not.", wide=True),
    ),
    selectable=(".spec.instance",),
)
