"""The status of an instance. Every field has one writer, which its documentation names."""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

from kairship.resources.condition import Condition, conditions_of
from kairship.resources.instance_conditions import InstanceCondition
from kairship.resources.schema.documented_enum import DocumentedEnum
from kairship.resources.schema.fields import Fields
from kairship.resources.schema.scalars import (
    Count,
    Identifier,
    Label,
    Quantities,
    ReadyCount,
    SecretReference,
    keyed_by,
)

Message = Annotated[str, Meta(max_length=32768)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class InstanceState(DocumentedEnum):
    """What an instance is doing, in one word."""

    INPROCESS = "INPROCESS", "it is being created"
    RUNNING = "RUNNING", "it can be used"
    TERMINAL = "TERMINAL", "it is being deleted"
    UNAVAILABLE = "UNAVAILABLE", "it cannot be used; its conditions say why"
    UNKNOWN = "UNKNOWN", "its state could not be observed"


class Operation(DocumentedEnum):
    """An operation of the lifecycle controller."""

    CREATE = "Create", "the control plane is being created or adopted"
    CONFIGURE = "Configure", "settings are being changed"
    UPGRADE = "Upgrade", "the version is being changed"
    ROLL_BACK = "RollBack", "a failed upgrade is being undone"
    BACKUP = "Backup", "a backup is being taken"
    RESTORE = "Restore", "a backup is being restored"
    DELETE = "Delete", "the control plane is being destroyed or released"


class Phase(DocumentedEnum):
    """The phase of a backup or restore."""

    RUNNING = "Running", "it has begun, and continues after any interruption"
    COMPLETED = "Completed", "it is done"
    FAILED = "Failed", "it failed; the message says why"


class Progress(Fields, frozen=True, kw_only=True):
    """The progress of the running operation."""

    operation: Operation
    """The operation."""

    step: Annotated[str, Meta(max_length=128)]
    """Name of the current step."""

    position: Annotated[int, Meta(ge=1)]
    """Number of the current step, counted from 1."""

    total: Annotated[int, Meta(ge=1)]
    """Number of steps of the operation."""

    started_at: dt.datetime
    """When the operation began."""

    message: Message = ""
    """What the step does, for people; after a failure also what failed."""


class Upgrade(Fields, frozen=True, kw_only=True):
    """An upgrade that has begun."""

    from_version: str = msgspec.field(name="from")
    """The version before the upgrade."""

    to_version: str = msgspec.field(name="to")
    """The version after the upgrade."""

    started_at: dt.datetime
    """When it began."""

    snapshot: Digest | None = None
    """SHA-256 of the snapshot for a rollback. Nothing is changed before it is set."""


class Backup(Fields, frozen=True, kw_only=True):
    """A backup that the spec asks for."""

    name: Label
    """Name of the backup."""

    phase: Phase
    """The phase of the backup."""

    taken_at: dt.datetime | None = None
    """The time of the data in the backup."""

    version: str = ""
    """Karmada version that wrote the data. A restore needs the same version."""

    size_bytes: Count = 0
    """Size of the snapshot."""

    sha256: Digest | None = None
    """SHA-256 of the snapshot. It is verified before a restore changes anything."""

    message: Message = ""
    """Why it failed."""


class Restore(Fields, frozen=True, kw_only=True):
    """The last restore that has begun. Its request is never executed again."""

    request: Identifier
    """The request in spec.restore."""

    backup: Label
    """The backup that is restored."""

    phase: Phase
    """The phase of the restore."""

    started_at: dt.datetime
    """When it began."""

    finished_at: dt.datetime | None = None
    """When it ended."""

    message: Message = ""
    """Why it failed."""


class ClusterCount(Fields, frozen=True, kw_only=True):
    """The member clusters."""

    total: Count
    """Number of clusters that have joined."""

    ready: Count
    """Number of them that are ready. Only these are summed in `current`."""

    stale: Count
    """Number of them whose last known state is old. They are summed in `stale`."""


class Totals(Fields, frozen=True, kw_only=True):
    """Sums over clusters."""

    nodes: ReadyCount
    """The nodes."""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    """Allocatable resources of the nodes, by resource name: cpu, memory, pods …"""

    allocated: Quantities = msgspec.field(default_factory=dict)
    """Requests of the scheduled pods."""

    allocating: Quantities = msgspec.field(default_factory=dict)
    """Requests of the pods that are not scheduled yet."""


class Summary(Fields, frozen=True, kw_only=True):
    """Statistics of the instance and its member clusters."""

    observed_at: dt.datetime
    """When the statistics were computed."""

    clusters: ClusterCount
    """The member clusters."""

    current: Totals
    """Sums over the clusters that are ready."""

    stale: Totals
    """Sums over the last known state of the clusters that are not ready. They are not in `current`."""

    stale_since: dt.datetime | None = None
    """When the first of those clusters was lost, and so the maximum age of the values in `stale`."""

    workloads: dict[str, ReadyCount] = msgspec.field(default_factory=dict)
    """Workloads in the instance by kind: Deployment, StatefulSet, DaemonSet, Job, CronJob."""

    resources: dict[str, Count] = msgspec.field(default_factory=dict)
    """Other distributed objects in the instance by kind: Service, Ingress, ConfigMap, Secret, PersistentVolumeClaim."""

    policies: dict[str, Count] = msgspec.field(default_factory=dict)
    """Policies by kind: PropagationPolicy, ClusterPropagationPolicy, OverridePolicy, ClusterOverridePolicy."""


class InstanceStatus(Fields, frozen=True, kw_only=True):
    """The observed state of the instance."""

    observed_generation: Count = 0
    """The metadata.generation whose settings are in effect. Written by lifecycle."""

    state: InstanceState | None = None
    """What the instance is doing, derived from the conditions. Written by status sync."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(InstanceCondition)] = ()
    """Conditions of the instance. Each type has one writer."""

    karmada_version: str = ""
    """Karmada version that runs. Written by lifecycle."""

    kubernetes_version: str = ""
    """Version of the instance's Kubernetes API. Written by status sync."""

    endpoint: str = ""
    """Address of the instance's API server that the plane uses. Written by lifecycle."""

    credentials: SecretReference | None = None
    """The Secret with the plane's own kubeconfig for the instance, under the key `kubeconfig`. Written by lifecycle."""

    operation: Progress | None = None
    """The progress of the running operation; absent if none runs. Written by lifecycle."""

    upgrade: Upgrade | None = None
    """The upgrade that has begun and not ended. Written by lifecycle."""

    backups: Annotated[tuple[Backup, ...], keyed_by("name", max_length=64)] = ()
    """The backups and their phases. Written by lifecycle."""

    restore: Restore | None = None
    """The last restore that has begun. Written by lifecycle."""

    summary: Summary | None = None
    """Statistics of the instance and its member clusters. Written by statistics."""
