"""The metrics of the pool. Their labels are the targets; the series of a target are removed with it."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kairship.instances.pool.health import Reason, TargetKind

_LABELS = ("kind", "name")
# A few only, because every target has all of them: the same room, the same country, the other side of the world, slow.
_BUCKETS = (0.01, 0.1, 0.5, 2.5)


class PoolMetrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Without a `registry` the metrics go to one of their own, which nothing reads."""
        at = registry or CollectorRegistry()
        self._connected = Gauge("kairship_pool_connected", "Whether the target can be used", _LABELS, registry=at)
        self._latency = Histogram(
            "kairship_pool_probe_seconds", "How long an answer took", _LABELS, buckets=_BUCKETS, registry=at
        )
        self._replacements = Counter(
            "kairship_pool_client_replacements", "Clients replaced by one with new credentials", _LABELS, registry=at
        )
        self._failures = Counter(
            "kairship_pool_failures",
            "Probes that failed and credentials that could not be used",
            (*_LABELS, "reason"),
            registry=at,
        )

    def target(self, kind: TargetKind, name: str) -> "TargetMetrics":
        return TargetMetrics(self, kind, name)


class TargetMetrics:
    """The metrics of one target."""

    def __init__(self, of: PoolMetrics, kind: TargetKind, name: str) -> None:
        self._of = of
        self._labels = (kind.value, name)
        self._is_removed = False
        self.connected = of._connected.labels(*self._labels)
        self.latency = of._latency.labels(*self._labels)
        self.replacements = of._replacements.labels(*self._labels)

    def failed(self, reason: Reason) -> None:
        if self._is_removed:
            return  # a last probe of a removed target: its series must not come back
        self._of._failures.labels(*self._labels, reason.value).inc()

    def remove(self) -> None:
        self._is_removed = True
        for metric in (self._of._connected, self._of._latency, self._of._replacements):
            metric.remove(*self._labels)
        self._of._failures.remove_by_labels(dict(zip(_LABELS, self._labels, strict=True)))
