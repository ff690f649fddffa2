"""Figures of several workers in one text."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kairship.apiserver.crew_metrics import merged


def figures(count: int) -> str:
    registry = CollectorRegistry()
    Counter("requests", "Requests.", ("code",), registry=registry).labels('a"b\\').inc(count)
    Histogram("seconds", "Seconds.", registry=registry, buckets=(1,)).observe(count)
    return generate_latest(registry).decode()


def test_each_worker_has_its_own() -> None:
    text = merged({0: figures(1), 3: figures(5)}).decode()
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


def test_nobody_is_nothing() -> None:
    assert merged({}) == b""
