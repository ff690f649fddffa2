"""The state of the collector for Prometheus, by cluster and kind, computed when it is scraped."""

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector as Source

from kairship.index import kind_name
from kairship.kpanda.collection_controller.index_sizes import IndexSizes
from kairship.kpanda.collector import Collector
from kairship.reconcile import Clock

_LABELS = ("cluster", "kind")
_PREFIX = "kairship_collector"


class CollectionMetrics(Source):
    """Is registered with a registry. Clusters that are no longer collected leave no series behind."""

    def __init__(
        self,
        clusters: Callable[[], Iterable[tuple[str, str]]],
        collector: Collector,
        sizes: IndexSizes,
        *,
        clock: Clock,
    ) -> None:
        self._clusters = clusters
        self._collector = collector
        self._sizes = sizes
        self._clock = clock

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        live = GaugeMetricFamily(f"{_PREFIX}_live", "Whether the kind is being followed.", labels=_LABELS)
        objects = GaugeMetricFamily(f"{_PREFIX}_objects", "Objects in the index.", labels=_LABELS)
        size = GaugeMetricFamily(f"{_PREFIX}_bytes", "Room that they take.", labels=_LABELS)
        lag = GaugeMetricFamily(f"{_PREFIX}_lag_seconds", "How far the index is behind.", labels=_LABELS)
        resyncs = CounterMetricFamily(f"{_PREFIX}_resyncs", "Lists after the first one.", labels=_LABELS)
        errors = CounterMetricFamily(f"{_PREFIX}_errors", "Lists, watches and writes that failed.", labels=_LABELS)
        now = self._clock.now()
        for name, uid in self._clusters():
            for follower in self._collector.followers(uid):
                kind = kind_name(follower.resource)
                labels, counters = (name, kind), follower.counters
                stored = self._sizes.size(uid, kind)
                live.add_metric(labels, follower.problem is None)
                objects.add_metric(labels, stored.objects)
                size.add_metric(labels, stored.bytes)
                lag.add_metric(labels, counters.current_lag(now))
                resyncs.add_metric(labels, counters.resyncs)
                errors.add_metric(labels, counters.errors)
        return (live, objects, size, lag, resyncs, errors)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Empty, because the series are not known before there are clusters."""
        return ()
