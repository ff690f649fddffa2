"""The metrics of this package, under the names that client-go and controller-runtime use.

A process has one `Metrics` for its registry. Queues, controllers and reflectors get their own series from it by name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From a millisecond to a quarter of an hour: a key may be served at once, or wait behind an upgrade.
_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0, 900.0)


@dataclass(frozen=True)
class QueueMetrics:
    adds: Counter
    retries: Counter
    waited: Histogram
    worked: Histogram


@dataclass(frozen=True)
class ControllerMetrics:
    time: Histogram
    active: Gauge
    terminal_errors: Counter
    _results: Counter
    _name: str

    def result(self, result: str) -> None:
        self._results.labels(self._name, result).inc()


@dataclass(frozen=True)
class ReflectorMetrics:
    lists: Counter
    interruptions: Counter


class Metrics:
    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Without a registry the metrics go to one that is not exported."""
        at = registry or CollectorRegistry()
        queue = ("name",)
        self._depth = Gauge("workqueue_depth", "Keys that wait", queue, registry=at)
        self._adds = Counter("workqueue_adds", "Keys added", queue, registry=at)
        self._retries = Counter("workqueue_retries", "Keys added again after a failure", queue, registry=at)
        self._waited = Histogram(
            "workqueue_queue_duration_seconds", "How long a key waited", queue, buckets=_BUCKETS, registry=at
        )
        self._worked = Histogram(
            "workqueue_work_duration_seconds", "How long a key was worked on", queue, buckets=_BUCKETS, registry=at
        )
        self._unfinished = Gauge(
            "workqueue_unfinished_work_seconds", "Seconds of work begun and not yet ended", queue, registry=at
        )
        self._longest = Gauge(
            "workqueue_longest_running_processor_seconds", "Age of the oldest work not yet ended", queue, registry=at
        )

        controller = ("controller",)
        self._results = Counter(
            "controller_runtime_reconcile", "Reconciles by result", (*controller, "result"), registry=at
        )
        self._time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a reconcile took",
            controller,
            buckets=_BUCKETS,
            registry=at,
        )
        self._active = Gauge("controller_runtime_active_workers", "Workers with a key", controller, registry=at)
        self._workers = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of a controller", controller, registry=at
        )
        self._restarts = Counter(
            "reconcile_restarts", "Crashes of a controller or of what it relies on", ("part",), registry=at
        )
        self._terminal = Counter(
            "controller_runtime_terminal_reconcile_errors", "Failures that no retry mends", controller, registry=at
        )

        reflector = ("name",)
        self._lists = Counter("reflector_lists", "Lists begun", reflector, registry=at)
        self._interruptions = Counter("reflector_interruptions", "Times that contact was lost", reflector, registry=at)
        self._objects = Gauge("reflector_objects", "Objects kept", reflector, registry=at)

        self._leading = Gauge(
            "leader_election_master_status", "1 while this process holds the lease", ("name",), registry=at
        )
        self.events_dropped = Counter("events_dropped", "Events that could not be recorded", registry=at)

    def queue(
        self,
        name: str,
        *,
        depth: Callable[[], float],
        unfinished: Callable[[], float],
        longest: Callable[[], float],
    ) -> QueueMetrics:
        self._depth.labels(name).set_function(depth)
        self._unfinished.labels(name).set_function(unfinished)
        self._longest.labels(name).set_function(longest)
        return QueueMetrics(
            adds=self._adds.labels(name),
            retries=self._retries.labels(name),
            waited=self._waited.labels(name),
            worked=self._worked.labels(name),
        )

    def controller(self, name: str, *, workers: int) -> ControllerMetrics:
        self._workers.labels(name).set(workers)
        return ControllerMetrics(
            time=self._time.labels(name),
            active=self._active.labels(name),
            terminal_errors=self._terminal.labels(name),
            _results=self._results,
            _name=name,
        )

    def reflector(self, name: str, *, objects: Callable[[], float]) -> ReflectorMetrics:
        self._objects.labels(name).set_function(objects)
        return ReflectorMetrics(lists=self._lists.labels(name), interruptions=self._interruptions.labels(name))

    def restarts(self, part: str) -> Counter:
        return self._restarts.labels(part)

    def leading(self, lease: str) -> Gauge:
        return self._leading.labels(lease)
