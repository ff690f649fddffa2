"""The authoriser follows a real API server: rights come and go with bindings, and it fails closed when disconnected."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from support import our_kinds
from support.our_kinds import SERVED, Kube, binding, instance, own_objects
from support.relay import Relay, relay_to
from support.waiting import PATIENCE, eventually
from yarl import URL

from kairship.access import AccessInformer, Binding, BindingStore, Caller, Decision, informer
from kairship.access.delivery.protocol import DeliveredBinding, Receiver
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.delivery import webhooks
from kairship.ghippo.delivery.deliverer import Deliverer
from kairship.ghippo.identity import users
from kairship.ghippo.sealing import Sealer
from kairship.ghippo.tenancy import bindings, registered_instances, workspaces
from kairship.kube import AddressRule, Client, Conflict, Invalid
from kairship.reconcile import Backoff, Metrics, SystemClock
from kairship.resources import AccessBindingSpec

GET, CREATE = "kairship.deployments.get", "kairship.deployments.create"
ANN = Caller("alice")


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        await our_kinds.install(client)
        yield client


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[AccessInformer]:
    found = AccessInformer(client, clock=SystemClock(), metrics=Metrics())
    running = asyncio.ensure_future(found.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await found.wait_synced()
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def becomes(
    found: AccessInformer, decision: Decision, permission: str, name: str, namespace: str | None = None
) -> None:
    async def holds() -> bool:
        return found.authoriser.on_instance(ANN, permission, name, namespace) is decision

    await eventually(holds, f"{permission} is {decision.value}")


async def make(client: Client, own: str, **scope: Any) -> str:
    """Creates an instance and a binding on it; returns the UID of the instance."""
    made = await client.create(SERVED["Instance"], instance(own))
    uid = str(made["metadata"]["uid"])
    whole = {"level": "Instance", "instance": own, "instanceUid": uid} | scope
    await client.create(SERVED["AccessBinding"], binding(own, permissions=[GET, CREATE], scope=whole))
    return uid


async def test_rights_come_and_go_with_bindings(client: Client) -> None:
    async with own_objects(client) as own, following(client) as found:
        changed: list[str] = []
        found.on_binding_changed(lambda old: changed.append(old.name))
        await becomes(found, Decision.HIDDEN, GET, own)
        await make(client, own)
        await becomes(found, Decision.ALLOWED, CREATE, own)
        change = {"spec": {"permissions": [GET], "sequence": 6}}
        await client.patch(SERVED["AccessBinding"], own, change)
        await becomes(found, Decision.FORBIDDEN, CREATE, own)
        await client.patch(SERVED["AccessBinding"], own, {"spec": {"revoked": True, "sequence": 7}})
        await becomes(found, Decision.HIDDEN, GET, own)
        assert changed.count(own) == 2


async def test_a_right_does_not_pass_on_to_a_recreated_instance(client: Client) -> None:
    async with own_objects(client) as own, following(client) as found:
        uid = await make(client, own)
        await becomes(found, Decision.ALLOWED, GET, own)
        await our_kinds.delete_when_allowed(client, SERVED["Instance"], own)
        await becomes(found, Decision.HIDDEN, GET, own)
        made = await client.create(SERVED["Instance"], instance(own))
        assert made["metadata"]["uid"] != uid
        await eventually(lambda: _knows(found, own), "the new instance is known")
        assert found.authoriser.on_instance(ANN, GET, own) is Decision.HIDDEN


async def _knows(found: AccessInformer, name: str) -> bool:
    return found._known_instances.uid(name) is not None


async def test_the_api_server_takes_the_scope_of_a_workspace_and_refuses_half_of_one(client: Client) -> None:
    async with own_objects(client) as own:
        good = {"level": "Workspace", "workspace": "7"}
        for wrong in ({"level": "Workspace"}, {"level": "Platform", "workspace": "7"}, good | {"instance": own}):
            with pytest.raises(Invalid):
                await client.create(SERVED["AccessBinding"], binding(own, scope=wrong))
        seeing = ["ghippo.workspaces.get"]
        await client.create(SERVED["AccessBinding"], binding(own, scope=good, permissions=seeing))
        async with following(client) as found:

            async def sees_workspace() -> bool:
                return found.authoriser.on_workspace(ANN, seeing[0], "7") is Decision.ALLOWED

            await eventually(sees_workspace, "the workspace is seen")


@asynccontextmanager
async def client_through(relay: Relay, kube: Kube) -> AsyncIterator[Client]:
    connection = msgspec.structs.replace(
        kube.connection, server=f"https://{relay.address}", tls_server_name=URL(kube.connection.server).host
    )
    async with Client(connection, timeout=5) as client:
        yield client


@pytest.mark.parametrize("fault", [Relay.hold, lambda relay: (relay.refuse(), relay.reset())], ids=["silent", "broken"])
async def test_without_contact_writes_are_refused_and_reads_go_on_for_a_while(
    client: Client, kube: Kube, fault: Callable[[Relay], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "PROBE_EVERY", 0.2)
    monkeypatch.setattr(informer, "PROBE_TIMEOUT", 0.5)
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    async with own_objects(client) as own, relay_to(url.host, url.port) as relay, client_through(relay, kube) as far:
        await make(client, own)
        async with following(far) as found:
            await becomes(found, Decision.ALLOWED, CREATE, own)
            fault(relay)
            await becomes(found, Decision.UNCERTAIN, CREATE, own)
            assert found.authoriser.on_instance(ANN, GET, own) is Decision.ALLOWED
            await relay.heal()
            await becomes(found, Decision.ALLOWED, CREATE, own)


async def test_what_global_management_delivers_is_what_the_api_server_takes(client: Client) -> None:
    """Applies a delivery as a receiver does; the API server itself rejects an older sequence."""
    async with own_objects(client) as own:
        spec = binding(own)["spec"]
        delivered = DeliveredBinding(name=own, spec=msgspec.convert(spec, AccessBindingSpec))
        again = msgspec.json.decode(msgspec.json.encode(delivered), type=DeliveredBinding)
        whole = binding(own) | {"spec": msgspec.to_builtins(again.spec)}
        await client.create(SERVED["AccessBinding"], whole)
        with pytest.raises((Invalid, Conflict)):
            await client.patch(SERVED["AccessBinding"], own, {"spec": {"sequence": 4, "revoked": True}})


class Receiving:
    """The receiver of a webhook, like the entrance: it verifies, stores, and then acknowledges."""

    def __init__(self, store: BindingStore) -> None:
        self.receiver = Receiver()
        self._store = store
        self._lose = 1

    async def take(self, request: web.Request) -> web.Response:
        delivery = self.receiver.read(request.headers, await request.read(), at=time.time())
        await self._store.store(delivery)
        if self._lose:  # an acknowledgement that never arrives
            self._lose -= 1
            return web.Response(status=500)
        return web.Response(status=204)


class Mine:
    """The bindings of this test. Other tests have bindings in the same cluster that this global management lacks."""

    def __init__(self, found: AccessInformer, *subjects: str) -> None:
        self._found = found
        self._subjects = subjects

    def stored(self, name: str) -> Binding | None:
        return self._found.stored(name)

    def all_stored(self) -> list[Binding]:
        return [each for each in self._found.all_stored() if each.spec.subject.id in self._subjects]


@asynccontextmanager
async def served(receiving: Receiving) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/bindings", receiving.take)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/bindings"))
    finally:
        await server.close()


async def test_from_global_management_to_the_authoriser(client: Client, tmp_path: Path) -> None:
    """A role on a workspace is a right on the instance that the workspace holds, until either is taken away."""
    database, sealer = Database(f"sqlite:///{tmp_path / 'ghippo.db'}"), Sealer(Sealer.generate_key())
    await database.open()

    async def do(work: Callable[..., Any], **named: Any) -> Any:
        return await database.write(lambda connection: work(connection, at=int(time.time()), **named))

    async with own_objects(client) as own, following(client) as found:
        made = await client.create(SERVED["Instance"], instance(own))
        await do(registered_instances.register, name=own, uid=made["metadata"]["uid"])
        user = await do(users.create, name="ann")
        shop = await do(workspaces.create, name="shop", alias="", folder=None)
        ann = Caller(user)
        receiving = Receiving(BindingStore(client, Mine(found, user, own)))
        deliverer = Deliverer(
            database,
            sealer,
            AuditLog(sealer),
            addresses=AddressRule.allowing(["127.0.0.0/8"]),
            backoff=Backoff(0.05, 0.2),
        )

        async def allowed() -> bool:
            return found.authoriser.on_instance(ann, GET, own, "web") is Decision.ALLOWED

        async def hidden() -> bool:
            return found.authoriser.on_instance(ann, GET, own, "web") is Decision.HIDDEN

        async def stray_allowed() -> bool:
            return found.authoriser.on_instance(Caller(own), GET, own) is Decision.ALLOWED

        async def stray_hidden() -> bool:
            return not await stray_allowed()

        async def reconciled() -> bool:
            return bool(
                (await database.read(lambda connection: webhooks.get(connection, webhooks.PLANE))).reconciled_at
            )

        async with served(receiving) as url:
            secret = "the-secret-of-the-plane"
            await database.write(lambda connection: webhooks.ensure_plane(connection, sealer, url=url, secret=secret))
            receiving.receiver = Receiver(secret)
            running = asyncio.ensure_future(deliverer.run())
            try:
                target = bindings.Target(kind="Workspace", id=str(shop))
                given = await do(bindings.create, subject_kind="User", subject_id=user, role="viewer", target=target)
                held = await do(hold, workspace=shop, instance=own)
                await eventually(allowed, "the right has arrived")
                await do(release, workspace=shop, resource=held)
                await eventually(hidden, "the right has gone with the resource of the workspace")
                await do(hold, workspace=shop, instance=own)
                await eventually(allowed, "the right is back")
                # The first snapshot would withdraw the stray binding too, perhaps before anybody has seen it.
                await eventually(reconciled, "the first snapshot is acknowledged")
                # A binding that was created by hand, or left over after a restored backup, does not last.
                scope = {"level": "Instance", "instance": own, "instanceUid": made["metadata"]["uid"]}
                stray = binding(own, subject={"kind": "User", "id": own}, scope=scope, permissions=[GET])
                await client.create(SERVED["AccessBinding"], stray)
                await eventually(stray_allowed, "the stray binding counts")
                await database.write(lambda connection: webhooks.record_reconciled(connection, webhooks.PLANE, at=0))
                await eventually(stray_hidden, "the stray binding is withdrawn")
                assert await allowed()
                await do(bindings.delete, identifier=given)
                await eventually(hidden, "the right is taken away")
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        for each in (await client.list(SERVED["AccessBinding"])).items:
            if each["metadata"]["name"].startswith(given):
                await client.delete(SERVED["AccessBinding"], each["metadata"]["name"])
    await database.close()


def hold(connection: Any, *, workspace: int, instance: str, at: int) -> str:
    return workspaces.add(connection, workspace, instance=instance, namespace="", at=at)


def release(connection: Any, *, workspace: int, resource: str, at: int) -> None:
    workspaces.remove(connection, workspace, resource, at=at)
