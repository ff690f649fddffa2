"""The messages that all of our own kinds have in common: metadata and conditions. Pure functions."""

import datetime as dt
from collections.abc import Iterable

from kairship.gen.kairship.types.v1alpha1.metadata_pb import Condition, ObjectMeta, OwnerReference
from kairship.resources import Condition as OwnCondition
from kairship.rpc.resource_cache import SeenMetadata

# kubectl keeps a second copy of the object in it, and of a Secret with its values.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def metadata_view(seen: SeenMetadata) -> ObjectMeta:
    deleted = dt.datetime.fromisoformat(seen.deletion_timestamp) if seen.deletion_timestamp else None
    annotations = {key: value for key, value in (seen.annotations or {}).items() if key != LAST_APPLIED}
    return ObjectMeta(
        name=seen.name,
        uid=seen.uid,
        resource_version=seen.resource_version,
        creation_timestamp=unix_seconds(seen.creation_timestamp),
        deletion_timestamp=unix_seconds(deleted),
        labels=dict(seen.labels or {}),
        annotations=annotations,
        owner_references=[OwnerReference(uid=each.uid, controller=each.controller) for each in seen.owner_references],
        finalizers=list(seen.finalizers),
    )


def conditions_view(conditions: Iterable[OwnCondition]) -> list[Condition]:
    return [
        Condition(
            type=each.type,
            status=each.status,
            reason=each.reason,
            message=each.message,
            last_transition_time=each.last_transition_time.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        for each in sorted(conditions, key=lambda condition: condition.type)
    ]


def unix_seconds(time: dt.datetime | None) -> int:
    """0 if there is no time, as in the protos."""
    return int(time.timestamp()) if time else 0
