"""Merges the metrics of all workers into one exposition, with the label `worker`."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector


class _Merged(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def merged(texts: Mapping[int, str]) -> bytes:
    found: dict[str, Metric] = {}
    for worker, text in texts.items():
        for family in text_string_to_metric_families(text):
            metric = found.setdefault(family.name, Metric(family.name, family.documentation, family.type))
            for sample in family.samples:
                metric.add_sample(sample.name, {"worker": str(worker), **sample.labels}, sample.value)
    registry = CollectorRegistry()
    registry.register(_Merged(found.values()))
    return generate_latest(registry)
