"""A global cluster of the test's own beside the shared plane, for tests that run controllers.

The shared plane has a controller-manager. A second one without a common lease must not manage the same instances, so a
test that runs one needs a global cluster of its own. The supervisor of the shared plane runs it.
"""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from kairship import resources
from kairship.apiserver import rbac as apiserver
from kairship.controllers import rbac
from kairship.controlplane import ControlPlane, PlaneKind, kubernetes
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.ghippo import rbac as ghippo
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import resource_of
from kairship.resources import NAMESPACE
from kairship.supervisor import SupervisorClient
from support.waiting import PATIENCE, eventually

_MANAGER = "kairship-tests"


@contextmanager
def own_global(plane: EmbeddedPlane, engine: Engine) -> Iterator[Connection]:
    """Runs a global cluster with our kinds, for a fixture."""
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
    # Without kube-controller-manager: our controllers must not depend on Kubernetes' garbage collector here.
    await supervisor.put(kubernetes.etcd(own, engine), kubernetes.kube_apiserver(own, engine))
    await supervisor.wait_ready(own.group, timeout=PATIENCE)
    async with Client(own.connection()) as client:
        await _install(client)


async def identity(admin: Connection, account: str = rbac.ACCOUNT) -> Connection:
    """Returns a connection as the service account of a process, by default the controller-manager."""
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
    # Requests for a kind that was just defined fail in several ways before the kind is served.
    for definition in resources.DEFINITIONS:
        await eventually(partial(client.list, resource_of(definition)), f"{definition.name} being served")
    manifests = (*rbac.manifests(), *apiserver.manifests(), *ghippo.manifests())
    for manifest in (*resources.admission_policies(), *manifests):
        apply = partial(client.apply_object, manifest, field_manager=_MANAGER)
        await eventually(apply, f"{manifest['metadata']['name']} being accepted")
