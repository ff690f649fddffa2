"""The Prometheus metrics of the entrance, by operation. Every label has few values, whatever callers send."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kairship.apiserver.flowcontrol.fair_queue import FairQueue
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.wire import Method

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Operation:
    """The metrics of one operation over one protocol, resolved once."""

    def __init__(self, requests: Counter, seconds: Histogram, protocol: str, name: str) -> None:
        self._requests = requests
        self._labels = (protocol, name)
        self._by_code: dict[str, Counter] = {}
        self._seconds = seconds.labels(protocol, name)

    def count(self, code: str, seconds: float) -> None:
        counter = self._by_code.get(code)
        if counter is None:
            counter = self._by_code[code] = self._requests.labels(*self._labels, code)
        counter.inc()
        self._seconds.observe(seconds)


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "kairship_apiserver_requests", "Requests that ended.", ("protocol", "operation", "code"), registry=registry
        )
        self._seconds = Histogram(
            "kairship_apiserver_request_seconds",
            "From the first byte of a request to the end of its reply.",
            ("protocol", "operation"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._running = Gauge("kairship_apiserver_running", "Requests that are being served.", registry=registry)
        self._waiting = Gauge("kairship_apiserver_waiting", "Requests that wait for their turn.", registry=registry)
        self._streams = Gauge("kairship_apiserver_streams", "Streams that are open.", registry=registry)
        self.ignored_fields = Counter(
            "kairship_apiserver_ignored_fields", "Requests with fields that they do not have.", registry=registry
        )
        self._connections = Gauge(
            "kairship_apiserver_connections", "Connections of HTTP that are open.", registry=registry
        )
        self.refused_connections = Counter(
            "kairship_apiserver_connections_turned_away",
            "Connections of HTTP for which there was no room.",
            registry=registry,
        )
        self._operations: dict[tuple[str, str], Operation] = {}

    def follow(self, fair_queue: FairQueue, streams: Streams) -> None:
        self._running.set_function(lambda: fair_queue.running)
        self._waiting.set_function(lambda: fair_queue.waiting)
        self._streams.set_function(lambda: streams.count)

    def follow_connections(self, count: Callable[[], int]) -> None:
        self._connections.set_function(count)

    def operation(self, protocol: str, method: Method | None) -> Operation:
        """Returns the metrics of a method; without one, those of requests that lead to no method."""
        name = method.path if method else "unknown"
        operation = self._operations.get((protocol, name))
        if operation is None:
            operation = self._operations[protocol, name] = Operation(self._requests, self._seconds, protocol, name)
        return operation
