"""What is known of an instance. Every field has one writer, which its documentation names."""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

from .condition import Condition, conditions_of
from .documented import Documented
from .fields import Fields
from .instance_conditions import InstanceCondition
from .scalars import Count, Identifier, Label, Quantities, ReadyCount, SecretReference, keyed_by

Message = Annotated[str, Meta(max_length=32768)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class InstanceState(Documented):
    """What an instance is doing, in one word."""

    INPROCESS = "INPROCESS", "it is being created"
    RUNNING = "RUNNING", "it can be used"
    TERMINAL = "TERMINAL", "it is being deleted"
    UNAVAILABLE = "UNAVAILABLE", "something is wrong with it; its conditions say what"
    UNKNOWN = "UNKNOWN", "nobody has been able to look"


class Operation(Documented):
    """What the lifecycle controller can be doing to an instance."""

    CREATE = "Create", "the control plane is being made or adopted"
    CONFIGURE = "Configure", "settings are being changed"
    UPGRADE = "Upgrade", "the version is being changed"
    ROLL_BACK = "RollBack", "a failed upgrade is being undone"
    BACKUP = "Backup", "a backup is being taken"
    RESTORE = "Restore", "the instance is being brought back to a backup"
    DELETE = "Delete", "the control plane is being destroyed or let go"


class Phase(Documented):
    """How far a piece of work is."""

    RUNNING = "Running", "it has begun, and goes on after any interruption"
    COMPLETED = "Completed", "it is done"
    FAILED = "Failed", "it did not succeed; the message says why"


class Progress(Fields, frozen=True, kw_only=True):
    """How far the running operation is."""

    operation: Operation
    """What is being done."""

    step: Annotated[str, Meta(max_length=128)]
    """Name of the step that runs."""

    position: Annotated[int, Meta(ge=1)]
    """Which step of the operation it is, counted from 1."""

    total: Annotated[int, Meta(ge=1)]
    """How many steps the operation has."""

    started_at: dt.datetime
    """When the operation began."""

    message: Message = ""
    """What the step does, for people; after a failure also what went wrong."""


class Upgrade(Fields, frozen=True, kw_only=True):
    """A change of version that has begun."""

    from_version: str = msgspec.field(name="from")
    """The version before."""

    to_version: str = msgspec.field(name="to")
    """The version asked for."""

    started_at: dt.datetime
    """When it began."""

    snapshot: Digest | None = None
    """SHA-256 of the snapshot that leads back. Nothing is changed before it is set."""


class Backup(Fields, frozen=True, kw_only=True):
    """A backup that was asked for, and what became of it."""

    name: Label
    """Name of the backup."""

    phase: Phase
    """How far it is."""

    taken_at: dt.datetime | None = None
    """When the data was as it is in the backup."""

    version: str = ""
    """Karmada version that wrote the data; a restore needs the same one."""

    size_bytes: Count = 0
    """Size of the snapshot."""

    sha256: Digest | None = None
    """SHA-256 of the snapshot. It is verified before a restore changes anything."""

    message: Message = ""
    """What went wrong."""


class Restore(Fields, frozen=True, kw_only=True):
    """The last restore that has begun. Its request is never carried out again."""

    request: Identifier
    """The request that it answers."""

    backup: Label
    """The backup that it returns to."""

    phase: Phase
    """How far it is."""

    started_at: dt.datetime
    """When it began."""

    finished_at: dt.datetime | None = None
    """When it ended."""

    message: Message = ""
    """What went wrong."""


class ClusterCount(Fields, frozen=True, kw_only=True):
    """The member clusters."""

    total: Count
    """How many have joined."""

    ready: Count
    """How many of them are ready. Only their numbers are in `current`."""

    stale: Count
    """How many are known only from earlier. Their last numbers are in `stale`."""


class Totals(Fields, frozen=True, kw_only=True):
    """Sums over clusters."""

    nodes: ReadyCount
    """Their nodes."""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    """What their nodes offer to workloads, by resource name: cpu, memory, pods …"""

    allocated: Quantities = msgspec.field(default_factory=dict)
    """What the scheduled pods request."""

    allocating: Quantities = msgspec.field(default_factory=dict)
    """What pods request that are not scheduled yet."""


class Summary(Fields, frozen=True, kw_only=True):
    """What the instance holds, in numbers."""

    observed_at: dt.datetime
    """When these numbers were put together."""

    clusters: ClusterCount
    """The member clusters."""

    current: Totals
    """Sums over the clusters that are ready."""

    stale: Totals
    """Sums of the last known numbers of the clusters that are not. They are not in `current`."""

    stale_since: dt.datetime | None = None
    """When the first of those clusters was lost: how old the numbers in `stale` may be."""

    workloads: dict[str, ReadyCount] = msgspec.field(default_factory=dict)
    """Workloads in the instance by kind: Deployment, StatefulSet, DaemonSet, Job, CronJob."""

    resources: dict[str, Count] = msgspec.field(default_factory=dict)
    """Other distributed objects in the instance by kind: Service, Ingress, ConfigMap, Secret, PersistentVolumeClaim."""

    policies: dict[str, Count] = msgspec.field(default_factory=dict)
    """Policies by kind: PropagationPolicy, ClusterPropagationPolicy, OverridePolicy, ClusterOverridePolicy."""


class InstanceStatus(Fields, frozen=True, kw_only=True):
    """What is known of the instance."""

    observed_generation: Count = 0
    """The metadata.generation whose settings are in effect. Written by lifecycle."""

    state: InstanceState | None = None
    """What the instance is doing: follows from the conditions. Written by status sync."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(InstanceCondition)] = ()
    """What is the case with the instance, aspect by aspect. Each type has one writer."""

    karmada_version: str = ""
    """Karmada version that runs. Written by lifecycle."""

    kubernetes_version: str = ""
    """Version of the instance's Kubernetes API. Written by status sync."""

    endpoint: str = ""
    """Address of the instance's API server, as the plane reaches it. Written by lifecycle."""

    credentials: SecretReference | None = None
    """The Secret with the plane's own kubeconfig for the instance, under the key `kubeconfig`. Written by lifecycle."""

    operation: Progress | None = None
    """How far the running operation is; absent when nothing is being done. Written by lifecycle."""

    upgrade: Upgrade | None = None
    """The upgrade that has begun and not ended. Written by lifecycle."""

    backups: Annotated[tuple[Backup, ...], keyed_by("name", max_length=64)] = ()
    """The backups, and how far those being taken are. Written by lifecycle."""

    restore: Restore | None = None
    """The last restore that has begun. Written by lifecycle."""

    summary: Summary | None = None
    """What the instance holds, in numbers. Written by statistics."""
