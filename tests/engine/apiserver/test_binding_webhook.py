"""Deliveries of bindings at the entrance: genuine ones are stored once, in their order, and nothing else is."""

import asyncio
import base64
import io
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import msgspec
import pytest
from support import our_kinds
from support.entrance import Reply, Running, running
from support.our_kinds import SERVED, Kube, binding, own_objects
from support.relay import Relay, relay_to
from support.waiting import PATIENCE, eventually
from yarl import URL

from kairship.access import AccessInformer, BindingStore
from kairship.access.delivery.protocol import (
    MAX_BYTES,
    SIGNATURE,
    TIMESTAMP,
    TOLERANCE,
    BindingChanges,
    DeliveredBinding,
    SnapshotPage,
    encode,
    signed_headers,
)
from kairship.apiserver.bindings.webhook import BindingWebhook
from kairship.apiserver.bindings.webhook_secrets import WebhookSecrets
from kairship.kube import AlreadyExists, Client, NotFound, kinds
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import NAMESPACE, AccessBindingSpec, binding_webhook
from kairship.resources.binding_webhook import PATH

BINDING = SERVED["AccessBinding"]
SECRET = "the secret of these tests"


class Only:
    """Bindings of one test: others have theirs in the same cluster, and `SnapshotPage` would take them away."""

    def __init__(self, feed: AccessInformer, own: str) -> None:
        self.stored = feed.stored
        self._feed = feed
        self._own = own

    def all_stored(self) -> list[Any]:
        return [each for each in self._feed.all_stored() if each.name.startswith(self._own)]


class Hook:
    def __init__(self, server: Running, world: Client, own: str) -> None:
        self._server = server
        self.session = server.client.rest
        self.world = world
        self.own = own

    def delivered(self, sequence: int, *, name: str = "", revoked: bool = False) -> DeliveredBinding:
        spec = binding(self.own)["spec"] | {"sequence": sequence, "revoked": revoked}
        return DeliveredBinding(name=f"{self.own}{name}", spec=msgspec.convert(spec, AccessBindingSpec))

    async def post(
        self, *bindings: DeliveredBinding, secret: str = SECRET, at: float | None = None, everything: bool = False
    ) -> Reply:
        whole = SnapshotPage(bindings=bindings, after=self.own[:-1], upto=f"{self.own}~", sequence=100)
        body = encode(whole if everything else BindingChanges(bindings=bindings))
        return await self.send(body, signed_headers(secret, body, at=int(time.time() if at is None else at)))

    async def send(self, body: bytes, headers: dict[str, str]) -> Reply:
        return await self._server.client.named("").request("POST", PATH, body, headers=headers)

    async def stored(self, name: str = "") -> tuple[int, bool] | None:
        try:
            found = await self.world.get(BINDING, f"{self.own}{name}")
        except NotFound:
            return None
        return found["spec"]["sequence"], found["spec"].get("revoked", False)


async def hook_over(stack: AsyncExitStack, world: Client, client: Client) -> Hook:
    own = await stack.enter_async_context(own_objects(world))
    feed = AccessInformer(client, clock=SystemClock(), metrics=Metrics())
    secrets = WebhookSecrets(client, clock=SystemClock(), metrics=Metrics())
    tasks = [asyncio.create_task(feed.run()), asyncio.create_task(secrets.run())]
    stack.push_async_callback(_ended, tasks)
    webhook = BindingWebhook(BindingStore(client, Only(feed, own)), secrets)
    server = await stack.enter_async_context(running(webhooks={PATH: webhook.handle}))
    hook = Hook(server, world, own)
    stack.push_async_callback(_clear, world, own)
    async with asyncio.timeout(PATIENCE):
        await feed.wait_synced()

    async def knows_secret() -> bool:
        return (await hook.post()).status == 204

    await eventually(knows_secret, "the secret is known")
    return hook


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _clear(world: Client, own: str) -> None:
    for each in (await world.list(BINDING)).items:
        if each["metadata"]["name"].startswith(own):
            await world.delete(BINDING, each["metadata"]["name"], missing_ok=True)


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        await our_kinds.install(client)
        with suppress(AlreadyExists):
            await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
        data = {"secret": base64.b64encode(SECRET.encode()).decode()}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": binding_webhook.SECRET}, "data": data}
        await client.apply_object(manifest, field_manager="test", namespace=NAMESPACE)
        yield client


@pytest.fixture
async def hook(world: Client) -> AsyncIterator[Hook]:
    async with AsyncExitStack() as stack:
        yield await hook_over(stack, world, world)


async def test_a_delivery_is_stored_once_and_in_order_whatever_comes_when(hook: Hook) -> None:
    assert (await hook.post(hook.delivered(5))).status == 204
    assert await hook.stored() == (5, False)
    assert (await hook.post(hook.delivered(5))).status == 204  # doubled
    assert (await hook.post(hook.delivered(9, revoked=True))).status == 204
    assert (await hook.post(hook.delivered(7))).status == 204  # late: acknowledged, or it would come for ever
    assert await hook.stored() == (9, True)
    assert (await hook.post(hook.delivered(9))).status == 204  # an old right under the number of its end
    assert await hook.stored() == (9, True)


async def test_whole_reconcile_withdraws_what_is_not_known_any_more(hook: Hook) -> None:
    await hook.post(hook.delivered(5), hook.delivered(6, name="-b"))
    assert (await hook.post(hook.delivered(6, name="-b"), everything=True)).status == 204

    async def withdrawn() -> bool:
        await hook.post(hook.delivered(6, name="-b"), everything=True)
        return await hook.stored() in (None, (100, True))

    await eventually(withdrawn, "what was lost on the way is withdrawn")
    assert await hook.stored("-b") == (6, False)


@pytest.mark.parametrize("age", [TOLERANCE + 30, -TOLERANCE - 30])
async def test_what_is_not_of_this_time_is_refused(hook: Hook, age: int) -> None:
    reply = await hook.post(hook.delivered(5), at=time.time() - age)
    assert (reply.status, reply.json["code"]) == (401, 16)
    assert await hook.stored() is None


async def test_what_is_forged_is_refused_and_told_nothing(hook: Hook) -> None:
    body = encode(BindingChanges(bindings=(hook.delivered(5),)))
    headers = signed_headers(SECRET, body, at=int(time.time()))
    assert (await hook.post(hook.delivered(5), secret="another secret altogether")).status == 401
    assert (await hook.send(body.replace(b"alice", b"mallo"), headers)).status == 401
    assert (await hook.send(body, headers | {TIMESTAMP: str(int(time.time()) + 5)})).status == 401
    for missing in (SIGNATURE, TIMESTAMP):
        assert (await hook.send(body, {key: text for key, text in headers.items() if key != missing})).status == 401
    assert (await hook.send(b"[]", {})).status == 401
    nonsense = b'{"type": "changes", "bindings": [{"name": 1}]}'
    reply = await hook.send(nonsense, signed_headers(SECRET, nonsense, at=int(time.time())))
    assert reply.status == 401
    assert SECRET not in str(reply)
    large = b"x" * (MAX_BYTES + 1)
    headers = signed_headers(SECRET, large, at=int(time.time()))
    async with hook.session.post(PATH, data=io.BytesIO(large), headers=headers) as too_large:
        assert too_large.status == 413
    assert await hook.stored() is None


async def test_the_secret_changes_without_a_gap(hook: Hook) -> None:
    new = base64.b64encode(b"the next secret of these tests").decode()
    old = base64.b64encode(SECRET.encode()).decode()
    patch = {"data": {"secret": new, "previous": old}}
    await hook.world.patch(kinds.SECRETS, binding_webhook.SECRET, patch, namespace=NAMESPACE)

    async def signed_with_the_new() -> bool:
        return (await hook.post(secret="the next secret of these tests")).status == 204

    await eventually(signed_with_the_new, "the new secret is good")
    assert (await hook.post()).status == 204
    await hook.world.delete(kinds.SECRETS, binding_webhook.SECRET, namespace=NAMESPACE)

    async def nobodys() -> bool:
        return (await hook.post()).status == 401

    await eventually(nobodys, "without a secret nothing is genuine")


def mistaken(delivered: DeliveredBinding) -> DeliveredBinding:
    """Of somebody else under the same name, which the API server never takes."""
    subject = msgspec.structs.replace(delivered.spec.subject, id="somebody-else")
    return msgspec.structs.replace(delivered, spec=msgspec.structs.replace(delivered.spec, subject=subject))


async def test_one_that_is_refused_does_not_keep_back_the_others(hook: Hook) -> None:
    await hook.post(hook.delivered(5), hook.delivered(5, name="-b"))
    reply = await hook.post(mistaken(hook.delivered(9)), hook.delivered(11, name="-b", revoked=True))
    assert reply.status == 200
    [refused] = reply.json["refused"]
    assert (refused["name"], refused["sequence"]) == (hook.own, 9)
    assert "another subject has another binding" in refused["reason"]
    # What was given before does not hold any more, and can be given again under any later number.
    assert await hook.stored() == (8, True)
    assert await hook.stored("-b") == (11, True)
    for everything in (False, True):
        again = await hook.post(mistaken(hook.delivered(9)), hook.delivered(11, name="-b"), everything=everything)
        assert [each["sequence"] for each in again.json["refused"]] == [9]
    assert (await hook.post(hook.delivered(9))).status == 204
    assert await hook.stored() == (9, False)


async def test_one_that_was_never_stored_can_be_refused(hook: Hook) -> None:
    plain = hook.delivered(5)
    scope = msgspec.structs.replace(plain.spec.scope, workspace="7")
    unfit = msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, scope=scope))
    reply = await hook.post(unfit, hook.delivered(7, name="-b"))
    assert [each["name"] for each in reply.json["refused"]] == [hook.own]
    assert await hook.stored() is None
    assert await hook.stored("-b") == (7, False)
    assert (await hook.post(hook.delivered(9))).status == 204


async def test_a_withdrawal_is_never_refused(hook: Hook) -> None:
    """Whatever else is wrong with it, the right is gone."""
    await hook.post(hook.delivered(5))
    assert (await hook.post(mistaken(hook.delivered(7, revoked=True)))).status == 204
    assert await hook.stored() == (7, True)
    assert (await hook.post(mistaken(hook.delivered(9, name="-new", revoked=True)))).status == 204
    assert await hook.stored("-new") in (None, (9, True))


async def test_what_cannot_be_stored_is_not_acknowledged(world: Client, kube: Kube) -> None:
    url = URL(kube.connection.server)
    async with AsyncExitStack() as stack:
        relay: Relay = await stack.enter_async_context(relay_to(str(url.host), url.port or 0))
        connection = msgspec.structs.replace(
            kube.connection, server=f"https://{relay.address}", tls_server_name=url.host
        )
        client = await stack.enter_async_context(Client(connection, timeout=5))
        hook = await hook_over(stack, world, client)
        relay.refuse()
        relay.reset()
        reply = await hook.post(hook.delivered(5))
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        await relay.heal()

        async def taken() -> bool:
            return (await hook.post(hook.delivered(5))).status == 204

        await eventually(taken, "the same delivery is taken later")
        assert await hook.stored() == (5, False)
