"""A global cluster of one's own, beside the shared plane: for tests that run controllers.

The shared plane has a controller-manager itself. Two of them that do not know of each other must not look after the
same instances, so whoever runs one in a test needs a cluster that nobody else looks at. It is run by the supervisor of
the shared plane.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from kairship import resources
from kairship.apiserver import rbac as apiserver
from kairship.controllers import rbac
from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.ghippo import rbac as ghippo
from kairship.kube import Client, Connection, KubeError, kinds
from kairship.reconcile import resource_of
from kairship.resources import NAMESPACE
from kairship.supervisor import SupervisorClient
from support.waiting import PATIENCE

_MANAGER = "kairship-tests"


@contextmanager
def own_global(plane: EmbeddedPlane, engine: Engine) -> Iterator[Connection]:
    """A running one, for a fixture, with our kinds in it."""
    uid = str(uuid.uuid4())
    ports = asyncio.run(plane.supervisor.allocate_ports(uid, kubernetes.MEMBER_PORTS))
    own = ControlPlane(PlaneKind.MEMBER, f"global-{uid[:8]}", uid, plane.home.planes / uid, ports)
    try:
        asyncio.run(_bring_up(own, plane.supervisor, engine))
        yield own.connection()
    finally:
        asyncio.run(plane.supervisor.delete_group(own.group))


async def _bring_up(own: ControlPlane, supervisor: SupervisorClient, engine: Engine) -> None:
    await asyncio.to_thread(kubernetes.ensure_certificates, own)
    # Without a controller-manager: what the garbage collector would do is not to be relied on here.
    await supervisor.put(kubernetes.etcd(own, engine), kubernetes.kube_apiserver(own, engine))
    await supervisor.wait_ready(own.group, timeout=PATIENCE)
    async with Client(own.connection()) as client:
        await _install(client)


async def identity(admin: Connection, account: str = rbac.ACCOUNT) -> Connection:
    """The same cluster as a process of the plane, by default the controller-manager, with its rights and no more."""
    request = {"spec": {"expirationSeconds": 3600}}
    async with Client(admin) as client:
        reply = await client.create(
            kinds.SERVICE_ACCOUNTS, request, name=account, namespace=NAMESPACE, subresource="token"
        )
    return Connection(server=admin.server, ca=admin.ca, token=reply["status"]["token"])


async def _install(client: Client) -> None:
    await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for crd in resources.crds():
        await client.apply_object(crd, field_manager=_MANAGER)
    async with asyncio.timeout(PATIENCE):
        for definition in resources.DEFINITIONS:
            await _until_it_works(partial(client.list, resource_of(definition)))
        for policy in resources.admission_policies():
            await _until_it_works(partial(client.apply_object, policy, field_manager=_MANAGER))
        for manifest in (*rbac.manifests(), *apiserver.manifests(), *ghippo.manifests()):
            await _until_it_works(partial(client.apply_object, manifest, field_manager=_MANAGER))


async def _until_it_works(call: Callable[[], Awaitable[object]]) -> None:
    """A kind that was just defined is refused in several ways before it is served."""
    while True:
        with suppress(KubeError):
            await call()
            return
        await asyncio.sleep(0.1)
