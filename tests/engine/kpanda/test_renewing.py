"""Credentials that can renew themselves are renewed before they expire; for the others the status says when they do."""

import base64
import datetime as dt
import uuid
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from support.container_management import CLUSTER, LOOPBACK, Management, condition, is_ready, management_of
from support.waiting import eventually

from kairship.instances.account_tokens import issue_token
from kairship.instances.membership import edition_of
from kairship.kpanda.credentials.renewal import RenewalReconciler
from kairship.kpanda.credentials.secrets import CredentialSecrets
from kairship.kpanda.sharding import WholeShard
from kairship.kube import Client, Connection, Object, kinds
from kairship.reconcile import STALE, Context, Key, SystemClock
from kairship.resources import NAMESPACE

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIFE = 1200
"""The shortest validity that can be registered and is old enough for renewal after the clock is shifted."""
OLD = dt.timedelta(seconds=0.6 * LIFE)


class ShiftedClock(SystemClock):
    """A clock that is ahead of real time."""

    ahead = dt.timedelta()

    def wall(self) -> dt.datetime:
        return super().wall() + self.ahead


@pytest.fixture(scope="module")
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    home: Connection, clock: ShiftedClock, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Management]:
    async with management_of(home, tmp_path_factory.mktemp("index"), clock=clock) as management:
        yield management


async def token_of(cluster: Connection, *verbs: str) -> Connection:
    """A connection with a token of a new service account, which has these verbs on everything."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    async with Client(cluster) as client:
        await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": list(verbs)}]
        await client.create(kinds.CLUSTER_ROLES, {"metadata": {"name": name}, "rules": rules})
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
        issued = await issue_token(client, namespace="default", account=name, seconds=LIFE, timeout=10.0)
    own = msgspec.structs.replace(cluster, client_cert=None, client_key=None, token=issued.token)
    async with Client(own) as account:  # the API server hears of new rights with a delay
        await eventually(partial(account.list, kinds.NODES), "the rights of the account")
    return own


async def kept(kpanda: Management) -> tuple[Object, Connection]:
    """The Secret with the credential, and its kubeconfig."""
    page = await kpanda.world.list(kinds.SECRETS, namespace=NAMESPACE, label_selector="kpanda.io/credential-of")
    [secret] = page.items
    return secret, Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]))


def message(cluster: Object) -> str:
    [found] = [each for each in cluster["status"]["conditions"] if each["type"] == "CredentialsValid"]
    return str(found["message"])


async def age(kpanda: Management, clock: ShiftedClock, name: str) -> None:
    clock.ahead = OLD
    # Timers run in real time, so that something has to trigger the controller.
    await kpanda.world.patch(CLUSTER, name, {"metadata": {"labels": {"aged": "yes"}}})


async def test_a_token_is_renewed_in_time_and_without_a_gap(
    kpanda: Management, frankfurt: Connection, clock: ShiftedClock
) -> None:
    first = await token_of(frankfurt, "*")
    await kpanda.register(first, name="renewing")
    stored = await kpanda.until("renewing", lambda found: is_ready(found) and "is renewed before" in message(found))
    assert condition(stored, "CredentialsValid") == ("True", "Verified")
    secret, connection = await kept(kpanda)
    assert connection.token == first.token
    edition = edition_of(connection, secret["metadata"].get("labels"))
    followers = {id(each) for each in kpanda.assembly.collector.followers(stored["metadata"]["uid"])}

    await age(kpanda, clock, "renewing")

    async def renewed() -> bool:
        return (await kept(kpanda))[1].token != first.token

    await eventually(renewed, "another token")
    clock.ahead = dt.timedelta()
    secret, connection = await kept(kpanda)
    # The edition stays the same, so that Karmada's own tokens of the member are not issued anew.
    assert edition_of(connection, secret["metadata"]["labels"]) == edition

    async def used() -> bool:
        return kpanda.token_in_use("renewing") == (await kept(kpanda))[1].token

    await eventually(used, "its use")
    async with Client(first) as old:
        await old.get(kinds.NAMESPACES, "kube-system")
    await kpanda.until("renewing", is_ready)
    assert {id(each) for each in kpanda.assembly.collector.followers(stored["metadata"]["uid"])} == followers


async def test_a_cache_that_is_behind_the_renewed_credential_does_not_begin_another_edition(
    kpanda: Management, frankfurt: Connection, clock: ShiftedClock
) -> None:
    await kpanda.register(await token_of(frankfurt, "*"), name="twice")
    await kpanda.until("twice", is_ready)
    cluster = kpanda.assembly.global_cluster.clusters.reflector.store.get("twice")
    assert cluster is not None
    name = cluster.spec.credentials.name
    before = kpanda.assembly.global_cluster.secrets.store.get(name, namespace=NAMESPACE)
    assert before is not None
    await kpanda.world.patch(kinds.SECRETS, name, {"metadata": {"labels": {"written": "since"}}}, namespace=NAMESPACE)

    cache: Any = SimpleNamespace(
        client=kpanda.world,
        clusters=kpanda.assembly.global_cluster.clusters,
        secrets=SimpleNamespace(store=SimpleNamespace(get=lambda *_, **__: before)),
    )
    behind = RenewalReconciler(
        cache, CredentialSecrets(kpanda.world), shard=WholeShard(), addresses=LOOPBACK, clock=clock
    )
    nobody: Any = None
    context = Context(client=nobody, owner=nobody, events=nobody, log=nobody, clock=clock, term=None)
    clock.ahead = OLD
    try:
        assert await behind.reconcile(context, Key("twice")) is STALE
    finally:
        clock.ahead = dt.timedelta()


async def test_one_that_may_not_renew_itself_says_until_when_it_lasts_and_what_to_do(
    kpanda: Management, frankfurt: Connection, clock: ShiftedClock
) -> None:
    reader = await token_of(frankfurt, "get", "list", "watch")
    await kpanda.register(reader, name="ending")
    await kpanda.until("ending", is_ready)
    await age(kpanda, clock, "ending")
    try:
        found = await kpanda.until("ending", lambda found: condition(found, "CredentialsValid") == ("True", "Expiring"))
    finally:
        clock.ahead = dt.timedelta()
    assert "serviceaccounts/token" in message(found)
    assert found["status"]["credentials"]["expiresAt"][:16].replace("T", " ") in message(found)
    assert (await kept(kpanda))[1].token == reader.token
