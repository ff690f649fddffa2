"""Enumerations whose members have a documented meaning.

`kubectl explain` and the generated tables show the meaning.
"""

from enum import StrEnum
from typing import Self


class DocumentedEnum(StrEnum):
    """An enumeration of strings. A member is declared as its value and its meaning."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member


class Writer(DocumentedEnum):
    """The writer of a field or condition. Its value is its field manager in server-side apply."""

    LIFECYCLE = "kairship-lifecycle", "the instance lifecycle controller"
    STATUS_SYNC = "kairship-status-sync", "the status sync controller"
    STATISTICS = "kairship-statistics", "the resource statistics controller"
    VIRTUAL_CLUSTER_SYNC = "kairship-virtual-cluster-sync", "the virtual cluster sync controller"
    INSTANCE_REGISTRY = "kairship-instance-registry", "the instance registry controller"
    MEMBERSHIP = "kairship-membership", "the cluster membership controller"
    ACCESS = "kairship-access", "the webhook controller of global management"
    KPANDA = "kairship-kpanda", "container management"
    GHIPPO = "kairship-ghippo", "global management"
