"""Who is there, judged by leases as they are seen."""

from typing import Any

import msgspec

from kairship.kpanda.sharing.replicas import PREFIX, Replicas, _Lease
from kairship.kube import Connection
from kairship.reconcile import Change, InterceptedClient, LeaseName, Metrics, Timing
from kairship.reconcile.testing import FakeClock
from kairship.resources import NAMESPACE


def lease(name: str, *, holder: str = "x", renewed: str = "1") -> _Lease:
    fields: dict[str, Any] = {"metadata": {"name": name}, "spec": {"holderIdentity": holder, "renewTime": renewed}}
    return msgspec.convert(fields, _Lease)


async def test_one_that_is_not_renewed_is_gone_and_one_that_gave_back_at_once() -> None:
    clock, told = FakeClock(), 0
    mine, other, third = (f"{PREFIX}{name}" for name in ("me", "other", "third"))

    def tell() -> None:
        nonlocal told
        told += 1

    async with InterceptedClient(Connection("https://192.0.2.1"), interceptors=()) as client:
        replicas = Replicas(client, LeaseName(NAMESPACE, mine), timing=Timing(), clock=clock, metrics=Metrics())
        replicas.subscribe(tell)
        for name in (mine, other, third, "kairship-controller-manager"):
            replicas._hear(Change(None, lease(name)))
        assert replicas.present == {mine, other, third}
        assert told == 2

        # Whoever gives its lease back is gone at once; whoever says nothing, when its time is over.
        replicas._hear(Change(lease(third), lease(third, holder="")))
        assert replicas.present == {mine, other}
        await clock.advance(7.9)
        replicas._look()
        assert replicas.present == {mine, other}
        await clock.advance(0.2)
        replicas._look()
        assert replicas.present == {mine}
        assert replicas.has("any cluster")

        # And whoever is heard of again is there again.
        replicas._hear(Change(lease(other), lease(other, renewed="2")))
        assert replicas.present == {mine, other}

        # Without contact nobody is taken for gone.
        replicas._leases.problem = "no contact"
        await clock.advance(60.0)
        replicas._look()
        assert replicas.present == {mine, other}
