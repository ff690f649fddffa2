"""The proxy's metrics for Prometheus. Every label has few values, whatever clients send."""

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_VERBS = frozenset(
    {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "upgrade", "discover"}
)


class ProxyMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kairship_proxy_requests",
            "Requests of the proxy that ended.",
            ("verb", "source", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "kairship_proxy_request_seconds",
            "From the first byte of a request to the end of its reply.",
            ("verb", "source"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._labelled: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def observe(self, verb: str, source: str, status: int, seconds: float) -> None:
        verb = verb if verb in _VERBS else "other"
        found = self._labelled.get((verb, source, status))
        if found is None:
            requests = self._requests.labels(verb, source, str(status))
            found = self._labelled[verb, source, status] = requests, self._seconds.labels(verb, source)
        found[0].inc()
        found[1].observe(seconds)
