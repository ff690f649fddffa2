"""The metrics of several workers are merged into one exposition."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kairship.apiserver.worker_metrics import merged


def exposition(count: int) -> str:
    registry = CollectorRegistry()
    Counter("requests", "Requests.", ("code",), registry=registry).labels('a"b\\').inc(count)
    Histogram("seconds", "Seconds.", registry=registry, buckets=(1,)).observe(count)
    return generate_latest(registry).decode()


def test_each_worker_has_its_own_samples() -> None:
    text = merged({0: exposition(1), 3: exposition(5)}).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert text.count("# TYPE requests_total counter") == 1
    counted = {
        sample.labels["worker"]: sample.value
        for sample in families["requests"].samples
        if sample.name == "requests_total"
    }
    assert counted == {"0": 1, "3": 5}
    assert families["seconds"].type == "histogram"
    assert all(sample.labels["code"] == 'a"b\\' for sample in families["requests"].samples)


def test_without_workers_there_are_no_metrics() -> None:
    assert merged({}) == b""
