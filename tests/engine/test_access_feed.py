"""The authoriser follows a real API server: rights come and go with bindings, and without contact it fails closed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from support import our_kinds
from support.our_kinds import SERVED, Kube, binding, instance, own_objects, until
from support.relay import Relay, relay_to
from yarl import URL

from kairship.access import Caller, Feed, Verdict, feed
from kairship.access.delivery import Delivered
from kairship.kube import Client, Conflict, Invalid
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import AccessBindingSpec

GET, CREATE = "kairship.deployments.get", "kairship.deployments.create"
ANN = Caller("alice")


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        await our_kinds.install(client)
        yield client


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[Feed]:
    found = Feed(client, clock=SystemClock(), metrics=Metrics())
    running = asyncio.ensure_future(found.run())
    try:
        async with asyncio.timeout(30):
            await found.wait_synced()
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def becomes(found: Feed, verdict: Verdict, permission: str, place: str, namespace: str | None = None) -> None:
    async def holds() -> bool:
        return found.authoriser.on_instance(ANN, permission, place, namespace) is verdict

    await until(holds, what=f"{permission} is {verdict.value}")


async def make(client: Client, own: str, **scope: Any) -> str:
    """An instance, and a binding on it."""
    made = await client.create(SERVED["Instance"], instance(own))
    uid = str(made["metadata"]["uid"])
    whole = {"level": "Instance", "instance": own, "instanceUid": uid} | scope
    await client.create(SERVED["AccessBinding"], binding(own, permissions=[GET, CREATE], scope=whole))
    return uid


async def test_rights_come_and_go_with_bindings(client: Client) -> None:
    async with own_objects(client) as own, following(client) as found:
        lost: list[str] = []
        found.on_loss(lambda old: lost.append(old.name))
        await becomes(found, Verdict.HIDDEN, GET, own)
        await make(client, own)
        await becomes(found, Verdict.ALLOWED, CREATE, own)
        change = {"spec": {"permissions": [GET], "sequence": 6}}
        await client.patch(SERVED["AccessBinding"], own, change)
        await becomes(found, Verdict.FORBIDDEN, CREATE, own)
        await client.patch(SERVED["AccessBinding"], own, {"spec": {"revoked": True, "sequence": 7}})
        await becomes(found, Verdict.HIDDEN, GET, own)
        assert lost.count(own) == 2


async def test_a_right_does_not_pass_on_to_an_instance_made_anew(client: Client) -> None:
    async with own_objects(client) as own, following(client) as found:
        uid = await make(client, own)
        await becomes(found, Verdict.ALLOWED, GET, own)
        await our_kinds.delete_when_allowed(client, SERVED["Instance"], own)
        await becomes(found, Verdict.HIDDEN, GET, own)
        made = await client.create(SERVED["Instance"], instance(own))
        assert made["metadata"]["uid"] != uid
        await until(lambda: _knows(found, own), what="the new instance is known")
        assert found.authoriser.on_instance(ANN, GET, own) is Verdict.HIDDEN


async def _knows(found: Feed, name: str) -> bool:
    return found._instances.uid(name) is not None


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
                return found.authoriser.on_workspace(ANN, seeing[0], "7") is Verdict.ALLOWED

            await until(sees_workspace, what="the workspace is seen")


@asynccontextmanager
async def behind(relay: Relay, kube: Kube) -> AsyncIterator[Client]:
    connection = msgspec.structs.replace(
        kube.connection, server=f"https://{relay.address}", tls_server_name=URL(kube.connection.server).host
    )
    async with Client(connection, timeout=5) as client:
        yield client


@pytest.mark.parametrize("fault", [Relay.hold, lambda relay: (relay.refuse(), relay.reset())], ids=["silent", "broken"])
async def test_without_contact_writes_are_refused_and_reads_go_on_for_a_while(
    client: Client, kube: Kube, fault: Callable[[Relay], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PROBE_EVERY", 0.2)
    monkeypatch.setattr(feed, "PROBE_TIMEOUT", 0.5)
    url = URL(kube.connection.server)
    assert url.host is not None
    assert url.port is not None
    async with own_objects(client) as own, relay_to(url.host, url.port) as relay, behind(relay, kube) as far:
        await make(client, own)
        async with following(far) as found:
            await becomes(found, Verdict.ALLOWED, CREATE, own)
            fault(relay)
            await becomes(found, Verdict.UNCERTAIN, CREATE, own)
            assert found.authoriser.on_instance(ANN, GET, own) is Verdict.ALLOWED
            await relay.heal()
            await becomes(found, Verdict.ALLOWED, CREATE, own)


async def test_what_global_management_delivers_is_what_the_api_server_takes(client: Client) -> None:
    """Applied as a receiver does; an older sequence is refused by the API server itself."""
    async with own_objects(client) as own:
        spec = binding(own)["spec"]
        delivered = Delivered(name=own, spec=msgspec.convert(spec, AccessBindingSpec))
        again = msgspec.json.decode(msgspec.json.encode(delivered), type=Delivered)
        whole = binding(own) | {"spec": msgspec.to_builtins(again.spec)}
        await client.create(SERVED["AccessBinding"], whole)
        with pytest.raises((Invalid, Conflict)):
            await client.patch(SERVED["AccessBinding"], own, {"spec": {"sequence": 4, "revoked": True}})
