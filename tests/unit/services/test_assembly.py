"""Every method of the services that are complete is answered, and nothing else is."""

from kairship.apiserver.services import EXTERNAL, Services
from kairship.instances.pool import Pool
from kairship.kube import Client, Connection
from kairship.reconcile import Metrics, SystemClock
from kairship.rpc.registry import Registry

COMPLETE = ("Instance", "Cluster", "Apps", "Policy")
OF_CORE = {"ListEvents", "ListInstanceEvents", "ListInstanceEventKinds", "ListPodsForMemberCluster"}


async def test_services_fit_the_protos_and_leave_nothing_out() -> None:
    async with Client(Connection(server="https://127.0.0.1:1")) as client:
        clock = SystemClock()
        pool = Pool(client, clock=clock, metrics=Metrics())
        services = Services(client, pool, clock=clock, metrics=Metrics(), offers=(EXTERNAL,))
        left = Registry(services.by_name()).unimplemented()
    assert [method.path for method in left if method.service in COMPLETE] == []
    assert not OF_CORE & {method.name for method in left}
