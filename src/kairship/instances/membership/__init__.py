"""Joins a cluster to a Karmada instance in push mode, and removes it again.

The functions take two clients: one with all permissions in the instance, and one with all permissions in the member.
They are idempotent: the next call completes what a killed call left behind.

    joining     writes the Cluster and the Secrets by which Karmada knows a member
    account     writes the service accounts and the role that Karmada uses in the member
    editions    says to which credential of the member Karmada's tokens belong
    taints      merges our taints with those that Karmada sets on the Cluster
    works       knows where Karmada keeps the Works of a member, and how to requeue one
    leaving     undoes all of it
"""

from kairship.instances.membership.account import NAMESPACE, USED_BY, earlier_tokens, is_used_by, secret_names
from kairship.instances.membership.editions import RENEWED, edition_of, renewed_label
from kairship.instances.membership.joining import (
    ANNOUNCED,
    ControlPlaneRefused,
    Join,
    Joined,
    JoinRefused,
    StillLeaving,
    join,
    trigger_scheduling,
)
from kairship.instances.membership.leaving import clean_up, leave, revoke_access
from kairship.instances.membership.taints import Taint
from kairship.instances.membership.works import execution_namespace, requeue_patch

__all__ = [
    "ANNOUNCED",
    "NAMESPACE",
    "RENEWED",
    "USED_BY",
    "ControlPlaneRefused",
    "Join",
    "JoinRefused",
    "Joined",
    "StillLeaving",
    "Taint",
    "clean_up",
    "earlier_tokens",
    "edition_of",
    "execution_namespace",
    "is_used_by",
    "join",
    "leave",
    "renewed_label",
    "requeue_patch",
    "revoke_access",
    "secret_names",
    "trigger_scheduling",
]
