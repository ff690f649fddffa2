"""Credentials that can renew themselves are renewed before they end; of the others it is told when they do."""

import base64
import datetime as dt
import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from support.container_management import CLUSTER, Management, condition, is_ready, management_of
from support.services import until

from kairship.instances.account_tokens import issue_token
from kairship.instances.membership import edition_of
from kairship.kube import Client, Connection, Object, kinds
from kairship.reconcile import SystemClock
from kairship.resources import NAMESPACE

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIFE = 1200
"""The shortest that can be registered and be old enough for its renewal after a shift."""
OLD = dt.timedelta(seconds=0.6 * LIFE)


class ShiftedClock(SystemClock):
    """What others take time for has passed already."""

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
    """By a token of an account of its own, which may do that with everything."""
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
    return msgspec.structs.replace(cluster, client_cert=None, client_key=None, token=issued.token)


async def kept(kpanda: Management) -> tuple[Object, Connection]:
    """The Secret with the credential, and what is in it."""
    page = await kpanda.world.list(kinds.SECRETS, namespace=NAMESPACE, label_selector="kpanda.io/credential-of")
    [secret] = page.items
    return secret, Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"]))


def message(cluster: Object) -> str:
    [found] = [each for each in cluster["status"]["conditions"] if each["type"] == "CredentialsValid"]
    return str(found["message"])


async def age(kpanda: Management, clock: ShiftedClock, name: str) -> None:
    clock.ahead = OLD
    # Timers are those of real time: something has to happen.
    await kpanda.world.patch(CLUSTER, name, {"metadata": {"labels": {"aged": "yes"}}})


async def test_a_token_is_renewed_in_time_and_without_a_gap(
    kpanda: Management, frankfurt: Connection, clock: ShiftedClock
) -> None:
    first = await token_of(frankfurt, "*")
    await kpanda.register(first, name="renewing")
    stored = await kpanda.seen("renewing", lambda found: is_ready(found) and "is renewed before" in message(found))
    assert condition(stored, "CredentialsValid") == ("True", "Verified")
    secret, connection = await kept(kpanda)
    assert connection.token == first.token
    edition = edition_of(connection, secret["metadata"].get("labels"))
    followers = {id(each) for each in kpanda.assembly.collector.followers(stored["metadata"]["uid"])}

    await age(kpanda, clock, "renewing")

    async def renewed() -> bool | None:
        return True if (await kept(kpanda))[1].token != first.token else None

    await until(renewed, what="another token")
    clock.ahead = dt.timedelta()
    secret, connection = await kept(kpanda)
    # Karmada's tokens are those of the credential that it follows.
    assert edition_of(connection, secret["metadata"]["labels"]) == edition

    async def used() -> bool | None:
        return True if kpanda.token_in_use("renewing") == (await kept(kpanda))[1].token else None

    await until(used, what="its use")
    async with Client(first) as old:
        await old.get(kinds.NAMESPACES, "kube-system")
    await kpanda.seen("renewing", is_ready)
    assert {id(each) for each in kpanda.assembly.collector.followers(stored["metadata"]["uid"])} == followers


async def test_one_that_may_not_renew_itself_says_until_when_it_lasts_and_what_to_do(
    kpanda: Management, frankfurt: Connection, clock: ShiftedClock
) -> None:
    reader = await token_of(frankfurt, "get", "list", "watch")
    await kpanda.register(reader, name="ending")
    await kpanda.seen("ending", is_ready)
    await age(kpanda, clock, "ending")
    try:
        found = await kpanda.seen("ending", lambda found: condition(found, "CredentialsValid") == ("True", "Expiring"))
    finally:
        clock.ahead = dt.timedelta()
    assert "serviceaccounts/token" in message(found)
    assert found["status"]["credentials"]["expiresAt"][:16].replace("T", " ") in message(found)
    assert (await kept(kpanda))[1].token == reader.token
