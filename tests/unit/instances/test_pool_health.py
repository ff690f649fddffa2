"""The reason for each failure, its message, and that the metrics of a target are removed with it."""

import datetime as dt

import pytest
from prometheus_client import CollectorRegistry

from kairship.instances.pool.health import Health, Reason, TargetKind
from kairship.instances.pool.metrics import PoolMetrics
from kairship.kube import (
    BadReply,
    CertificateExpired,
    ConnectFailed,
    Disconnected,
    InternalError,
    KubeError,
    TimedOut,
    TlsError,
    Unauthorized,
)

NOON = dt.datetime(2026, 5, 1, 12, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectFailed("x"), Reason.CONNECT_FAILED),
        (Disconnected("x"), Reason.CONNECT_FAILED),
        (TimedOut("x"), Reason.TIMED_OUT),
        (TlsError("x"), Reason.CERTIFICATE_REJECTED),
        (CertificateExpired("x"), Reason.CERTIFICATE_REJECTED),
        (Unauthorized(status=401), Reason.CREDENTIAL_REJECTED),
        (InternalError(status=500), Reason.BAD_ANSWER),
        (BadReply("x"), Reason.BAD_ANSWER),
    ],
)
def test_what_a_failed_probe_means(error: KubeError, reason: Reason) -> None:
    assert Reason.of(error) is reason


def test_a_refusal_says_what_why_and_since_when() -> None:
    health = Health(
        kind=TargetKind.CLUSTER,
        name="west",
        reachable=False,
        reason=Reason.TIMED_OUT,
        since=NOON,
        message="it hangs",
        error=TimedOut("it hangs"),
    )
    refusal = health.not_connected()
    assert str(refusal) == "cluster 'west' is not connected: no answer since 2026-05-01 12:00:00 UTC: it hangs"
    assert (refusal.kind, refusal.name, refusal.reason) == (TargetKind.CLUSTER, "west", Reason.TIMED_OUT)


def test_the_series_of_a_target_go_with_it() -> None:
    registry = CollectorRegistry()
    metrics = PoolMetrics(registry)
    west, east = (metrics.target(TargetKind.CLUSTER, name) for name in ("west", "east"))
    for target in (west, east):
        target.connected.set(1)
        target.latency.observe(0.2)
        target.replacements.inc()
        target.failed(Reason.TIMED_OUT)
        target.failed(Reason.CONNECT_FAILED)

    def series(name: str) -> int:
        return sum(sample.labels["name"] == name for family in registry.collect() for sample in family.samples)

    before = series("east")
    assert series("west") == before > 0
    west.remove()
    assert series("west") == 0
    assert series("east") == before
