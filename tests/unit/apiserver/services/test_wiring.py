"""The complete services serve every one of their methods."""

from kairship.apiserver.services import EXTERNAL, Services
from kairship.instances.pool import Pool
from kairship.kube import Client, Connection
from kairship.reconcile import Metrics, SystemClock
from kairship.rpc.service_registry import ServiceRegistry

COMPLETE = ("Instance", "Cluster", "Apps", "Policy")
SERVED_BY_CORE = {"ListEvents", "ListInstanceEvents", "ListInstanceEventKinds", "ListPodsForMemberCluster"}


async def test_complete_services_serve_all_methods_of_their_protos() -> None:
    async with Client(Connection(server="https://127.0.0.1:1")) as client:
        clock = SystemClock()
        pool = Pool(client, clock=clock, metrics=Metrics())
        services = Services(client, pool, clock=clock, metrics=Metrics(), drivers=(EXTERNAL,))
        left = ServiceRegistry(services.by_name()).unimplemented()
    assert [method.path for method in left if method.service in COMPLETE] == []
    assert not SERVED_BY_CORE & {method.name for method in left}
