"""Joining a cluster to a Karmada instance in push mode, and taking it out again.

Functions of two clients: one with every right in the instance, one in the member. All of them are idempotent: what a
killed call left behind, the next one completes. `joining` writes what Karmada knows of a member, `account` what it may
do there, `editions` which credential that goes with, `taints` those of the member among Karmada's own, `works` how
its Works are dealt with, `leaving` undoes all of it.
"""

from kairship.instances.membership.account import NAMESPACE, USED_BY, earlier_tokens, identity, is_used_by, secret_names
from kairship.instances.membership.editions import RENEWED, edition_of, renewed_label
from kairship.instances.membership.joining import ANNOUNCED, Join, Joined, JoinRefused, StillLeaving, announce, join
from kairship.instances.membership.leaving import clean, depart, disarm
from kairship.instances.membership.taints import Taint
from kairship.instances.membership.works import execution_namespace, shown_again

__all__ = [
    "ANNOUNCED",
    "NAMESPACE",
    "RENEWED",
    "USED_BY",
    "Join",
    "JoinRefused",
    "Joined",
    "StillLeaving",
    "Taint",
    "announce",
    "clean",
    "depart",
    "disarm",
    "earlier_tokens",
    "edition_of",
    "execution_namespace",
    "identity",
    "is_used_by",
    "join",
    "renewed_label",
    "secret_names",
    "shown_again",
]
