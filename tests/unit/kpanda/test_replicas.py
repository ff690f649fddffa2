"""Which replicas are present, judged by their Leases."""

from typing import Any

import msgspec
from support.reconcile import FakeClock

from kairship.kpanda.sharding.replicas import LEASE_PREFIX, Replicas, _Lease
from kairship.kube import Connection
from kairship.reconcile import Change, InterceptedClient, LeaseName, LeaseTiming, Metrics
from kairship.resources import NAMESPACE


def lease(name: str, *, holder: str = "x", renewed: str = "1") -> _Lease:
    fields: dict[str, Any] = {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "renewTime": renewed}}
    return msgspec.convert(fields, _Lease)


async def test_one_that_is_not_renewed_is_gone_and_one_that_gave_back_at_once() -> None:
    clock, notified = FakeClock(), 0
    mine, other, third = (f"{LEASE_PREFIX}{name}" for name in ("me", "other", "third"))

    def tell() -> None:
        nonlocal notified
        notified += 1

    async with InterceptedClient(Connection("https://192.0.2.1"), interceptors=()) as client:
        replicas = Replicas(client, LeaseName(NAMESPACE, mine), timing=LeaseTiming(), clock=clock, metrics=Metrics())
        replicas.subscribe(tell)
        for name in (mine, other, third, "kairship-controller-manager"):
            replicas._on_change(Change(None, lease(name)))
        assert replicas.present == {mine, other, third}
        assert notified == 2

        # A replica that releases its Lease is gone at once; one that stops renewing it, when the Lease expires.
        replicas._on_change(Change(lease(third), lease(third, holder="")))
        assert replicas.present == {mine, other}
        await clock.advance(7.9)
        replicas._refresh()
        assert replicas.present == {mine, other}
        await clock.advance(0.2)
        replicas._refresh()
        assert replicas.present == {mine}
        assert replicas.has("any cluster")

        # A replica that renews its Lease again is present again.
        replicas._on_change(Change(lease(other), lease(other, renewed="2")))
        assert replicas.present == {mine, other}

        # Without contact to the API server no replica is taken for gone.
        replicas._leases.problem = "no contact"
        await clock.advance(60.0)
        replicas._refresh()
        assert replicas.present == {mine, other}
