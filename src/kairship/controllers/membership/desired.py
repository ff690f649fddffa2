"""How Karmada should know a cluster of container management. Pure functions."""

from kairship.controllers.global_cluster import RegisteredCluster
from kairship.instances.membership import Join, Taint

# Labels of the plane itself are not copied to Karmada: placement must not depend on them.
_OURS = ("kairship.io", "kpanda.io")


def join_of(cluster: RegisteredCluster) -> Join:
    spec = cluster.spec
    return Join(
        name=cluster.metadata.name,
        provider=spec.provider or cluster.status.provider,
        region=spec.region,
        zones=spec.zones,
        labels={key: value for key, value in (cluster.metadata.labels or {}).items() if not _is_ours(key)},
        taints=tuple(Taint(key=taint.key, effect=str(taint.effect), value=taint.value) for taint in spec.taints),
    )


def _is_ours(label: str) -> bool:
    domain = label.partition("/")[0] if "/" in label else ""
    return any(domain == own or domain.endswith(f".{own}") for own in _OURS)
