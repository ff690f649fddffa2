"""Registration of real clusters: its result, what is refused and why, and that a refused one leaves nothing."""

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
import yaml
from protobuf.wkt import Empty
from support.certificates import Authority
from support.container_management import CLUSTER, Management, condition, is_ready, kubeconfig, token
from support.relay import relay_to
from support.services import refused
from support.waiting import eventually
from yarl import URL

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase
from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import CheckResult, CheckType, Verification
from kairship.kpanda.credentials.secrets import CREDENTIAL_OF, secret_name
from kairship.kpanda.verification import Timeouts, Verifier
from kairship.kube import AddressRule, Client, Connection, Object, kinds
from kairship.resources import NAMESPACE
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def token_with(client: Client, rule: Object) -> str:
    """A token of a new service account in a cluster, which may list nodes by this rule."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
    await client.create(kinds.CLUSTER_ROLES, {"metadata": {"name": name}, "rules": [rule]})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
    request = {"spec": {"expirationSeconds": 3600}}
    reply = await client.create(kinds.SERVICE_ACCOUNTS, request, namespace="default", name=name, subresource="token")
    given = str(reply["status"]["token"])
    own = msgspec.structs.replace(client.connection, client_cert=None, client_key=None, token=given)
    async with Client(own) as account:  # the API server hears of new rights with a delay
        await eventually(partial(account.list, kinds.NODES), "the rights of the account")
    return given


EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}


@asynccontextmanager
async def nothing_is_left(kpanda: Management) -> AsyncIterator[None]:
    before = await kpanda.secrets()
    yield
    assert (await kpanda.world.list(CLUSTER)).items == []
    assert await kpanda.secrets() == before


async def test_a_cluster_is_registered_and_its_state_is_found_out(kpanda: Management, frankfurt: Connection) -> None:
    spec = ClusterSpec(alias="Am Main", region="eu-central", zones=["eu-central-1a"])
    created = await kpanda.register(frankfurt, name="frankfurt", spec=spec, labels={"tier": "edge"})
    assert created.metadata is not None
    assert created.metadata.labels == {"tier": "edge"}
    stored = await kpanda.until("frankfurt", is_ready)
    shown = await kpanda("Clusters.GetCluster", Cluster, name="frankfurt")
    assert shown.spec == spec
    assert shown.status is not None
    assert shown.status.phase is ClusterPhase.RUNNING
    assert shown.status.nodes is not None
    assert shown.status.nodes.total == shown.status.nodes.ready > 0
    assert shown.status.resources is not None
    assert set(shown.status.resources.allocatable) >= {"cpu", "memory", "pods"}
    assert shown.status.kubernetes_version.startswith("v1.")
    assert shown.status.service_cidr
    assert shown.status.credential is not None
    assert shown.status.credential.expires_at > time.time()
    assert condition(stored, "Collected") == ("True", "Current")

    # The credential is in the Secret and nowhere else.
    (secret,) = await kpanda.secrets()
    found = await kpanda.world.get(kinds.SECRETS, secret, namespace=NAMESPACE)
    assert found["metadata"]["ownerReferences"][0]["uid"] == stored["metadata"]["uid"]
    assert frankfurt.client_key is not None
    key = frankfurt.client_key.decode().splitlines()[1]
    assert key not in str(stored)
    assert key not in str(shown)


async def test_a_token_with_its_authority_does_as_well(kpanda: Management, frankfurt: Connection) -> None:
    async with Client(frankfurt) as client:
        given = await token_with(client, EVERYTHING)
    credential = token(frankfurt.server, frankfurt.ca, given)
    await kpanda("Clusters.CreateCluster", Cluster, name="by-token", credential=credential)
    # The token expires within the hour. As its account may do everything, it is renewed before that.
    await kpanda.until(
        "by-token", lambda found: is_ready(found) and condition(found, "CredentialsValid") == ("True", "Verified")
    )


async def test_the_same_cluster_under_another_name_is_refused(kpanda: Management, frankfurt: Connection) -> None:
    await kpanda.register(frankfurt, name="one")
    before = await kpanda.secrets()
    with refused(Code.ALREADY_EXISTS, "registered already, as one"):
        await kpanda.register(frankfurt, name="two")
    with refused(Code.ALREADY_EXISTS, "choose another name"):
        await kpanda.register(frankfurt, name="one")
    assert await kpanda.secrets() == before


async def test_of_several_at_once_one_is_registered(kpanda: Management, frankfurt: Connection) -> None:
    outcomes = await asyncio.gather(
        *(kpanda.register(frankfurt, name=f"at-once-{number}") for number in range(4)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Cluster) for outcome in outcomes) == 1, outcomes
    assert len((await kpanda.world.list(CLUSTER)).items) == 1
    assert len(await kpanda.secrets()) == 1


REFUSED_FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exec": ({"exec": {"command": "/bin/sh", "apiVersion": "v1"}}, {}),
    "auth-provider": ({"auth-provider": {"name": "gcp"}}, {}),
    "refers to a file": ({"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"}, {}),
    "client-certificate refers": ({"client-certificate": "/etc/shadow", "client-key": "/etc/shadow"}, {}),
    "certificate-authority refers": ({}, {"certificate-authority": "/etc/ca.pem", "certificate-authority-data": None}),
    "proxy-url": ({}, {"proxy-url": "http://169.254.169.254"}),
    "insecure-skip-tls-verify": ({}, {"insecure-skip-tls-verify": True, "certificate-authority-data": None}),
    "'as'": ({"as": "system:admin"}, {}),
    "password": ({"username": "admin", "password": "hunter2"}, {}),
    "not encrypted": ({}, {"server": "http://203.0.113.7"}),
    "must be an address": ({}, {"server": "ftp://203.0.113.7"}),
    "no credential": ({"token": None}, {}),
}


def changed(connection: Connection, user: dict[str, Any], cluster: dict[str, Any]) -> str:
    config = yaml.safe_load(
        Connection(server=connection.server, ca=connection.ca, token="secret-token").to_kubeconfig(name="x")
    )
    config["users"][0]["user"] |= user
    config["clusters"][0]["cluster"] |= cluster
    return yaml.safe_dump(config)


@pytest.mark.parametrize("reason", REFUSED_FORMS)
async def test_what_a_kubeconfig_must_not_do_is_refused(kpanda: Management, frankfurt: Connection, reason: str) -> None:
    content = changed(frankfurt, *REFUSED_FORMS[reason])
    async with nothing_is_left(kpanda):
        with refused(Code.INVALID_ARGUMENT, reason) as refusal:
            await kpanda("Clusters.CreateCluster", Cluster, name="bad", credential=kubeconfig(content))
    assert "secret-token" not in str(refusal.value.status())
    assert "hunter2" not in str(refusal.value.status())


@pytest.mark.parametrize("content", ["no", "[]", "a: &a [*a]", "\x00", "apiVersion: v1", "x" * 1_000_000])
async def test_what_is_no_kubeconfig_is_refused(kpanda: Management, content: str) -> None:
    async with nothing_is_left(kpanda):
        with refused(Code.INVALID_ARGUMENT):
            await kpanda("Clusters.CreateCluster", Cluster, name="bad", credential=kubeconfig(content))


async def test_a_server_of_another_authority_is_refused(kpanda: Management, frankfurt: Connection) -> None:
    other = msgspec.structs.replace(frankfurt, ca=Authority().certificate)
    async with nothing_is_left(kpanda):
        with refused(Code.FAILED_PRECONDITION, "is not trusted"):
            await kpanda.register(other)


async def test_a_credential_that_the_cluster_does_not_accept_is_refused(
    kpanda: Management, frankfurt: Connection
) -> None:
    async with nothing_is_left(kpanda):
        credential = token(frankfurt.server, frankfurt.ca, "not-a-token-of-this-cluster")
        with refused(Code.FAILED_PRECONDITION, "does not accept"):
            await kpanda("Clusters.CreateCluster", Cluster, name="bad", credential=credential)


async def test_a_credential_that_has_ended_is_refused(kpanda: Management, frankfurt: Connection) -> None:
    claims = base64.urlsafe_b64encode(msgspec.json.encode({"exp": 1_700_000_000})).decode().rstrip("=")
    async with nothing_is_left(kpanda):
        credential = token(frankfurt.server, frankfurt.ca, f"eyJhbGciOiJSUzI1NiJ9.{claims}.c2lnbmF0dXJl")
        with refused(Code.FAILED_PRECONDITION, r"has ended \(2023-11-14"):
            await kpanda("Clusters.CreateCluster", Cluster, name="bad", credential=credential)


async def test_missing_rights_are_named(kpanda: Management, frankfurt: Connection) -> None:
    rules = {"apiGroups": [""], "resources": ["namespaces", "nodes"], "verbs": ["get", "list", "watch"]}
    async with Client(frankfurt) as client:
        given = await token_with(client, rules)
    credential = token(frankfurt.server, frankfurt.ca, given)
    async with nothing_is_left(kpanda):
        with refused(Code.FAILED_PRECONDITION, "lacks rights: list pods, watch pods"):
            await kpanda("Clusters.CreateCluster", Cluster, name="bad", credential=credential)
    found = await kpanda("Clusters.ValidateCluster", Verification, credential=credential)
    assert not found.accepted
    assert "list pods" in found.missing_rights
    results = {check.type: check.result for check in found.checks}
    assert results[CheckType.ACCEPTED] is CheckResult.PASSED
    assert results[CheckType.RIGHTS] is CheckResult.FAILED
    assert results[CheckType.IDENTITY] is CheckResult.NOT_MADE


async def test_validation_keeps_nothing(kpanda: Management, frankfurt: Connection) -> None:
    async with nothing_is_left(kpanda):
        found = await kpanda("Clusters.ValidateCluster", Verification, credential=kubeconfig(frankfurt))
    assert found.accepted
    assert found.nodes is not None
    assert found.nodes.total > 0
    assert {check.result for check in found.checks} <= {CheckResult.PASSED, CheckResult.WARNING}


async def test_a_server_that_does_not_answer_takes_no_longer_than_allowed(
    kpanda: Management, frankfurt: Connection
) -> None:
    url = URL(frankfurt.server)
    async with relay_to(str(url.host), url.port or 0) as relay:
        relay.hold()
        slow = msgspec.structs.replace(frankfurt, server=f"https://{relay.address}")
        began = time.monotonic()
        async with nothing_is_left(kpanda):
            with refused(Code.FAILED_PRECONDITION, "did not answer"):
                await kpanda.register(slow)
        assert time.monotonic() - began < 30
    closed = msgspec.structs.replace(frankfurt, server="https://127.0.0.1:9")
    async with nothing_is_left(kpanda):
        with refused(Code.FAILED_PRECONDITION, "no connection"):
            await kpanda.register(closed)


def verifier_with(kpanda: Management, addresses: AddressRule) -> Verifier:
    clock = kpanda.assembly.clock
    return Verifier(addresses=addresses, known_as=lambda _: None, now=clock.wall, timeouts=Timeouts())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_addresses_of_the_plane_itself_are_refused_unless_allowed(
    kpanda: Management, frankfurt: Connection, host: str
) -> None:
    server = f"https://{host}:{URL(frankfurt.server).port}"
    strict = verifier_with(kpanda, AddressRule())
    found = (await strict.verify(kubeconfig(frankfurt), endpoint=server)).result
    (failed,) = [check for check in found.checks if check.result is CheckResult.FAILED]
    assert failed.type is CheckType.ADDRESS
    assert "--allow-address" in failed.message


async def test_a_name_that_changes_its_address_between_two_connections_gains_nothing(
    kpanda: Management, frankfurt: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: a name resolves to an allowed address during verification, and to another one afterwards."""
    loop = asyncio.get_running_loop()
    resolve = loop.getaddrinfo
    answers = {"cluster.example": "127.0.0.1"}

    async def lie(host: Any, port: Any, **rest: Any) -> Any:
        return await resolve(answers.get(host, host), port, **rest)

    monkeypatch.setattr(loop, "getaddrinfo", lie)
    named = msgspec.structs.replace(
        frankfurt, server=f"https://cluster.example:{URL(frankfurt.server).port}", tls_server_name="127.0.0.1"
    )
    verifier = verifier_with(kpanda, AddressRule.allowing(["127.0.0.1"]))
    assert (await verifier.verify(kubeconfig(named))).result.accepted
    answers["cluster.example"] = "127.0.0.2"
    rebound = (await verifier.verify(kubeconfig(named))).result
    (failed,) = [check for check in rebound.checks if check.result is CheckResult.FAILED]
    assert failed.type is CheckType.ADDRESS


async def test_what_a_killed_registration_left_is_cleared_away(kpanda: Management, frankfurt: Connection) -> None:
    """A registration is killed between Secret and Cluster: another registration of the same cluster is refused for a
    while, and then takes over."""
    async with Client(frankfurt) as client:
        identity = (await client.get(kinds.NAMESPACES, "kube-system"))["metadata"]["uid"]
    secret: Object = {
        "metadata": {"name": secret_name(identity), "labels": {CREDENTIAL_OF: "killed"}},
        "data": {"kubeconfig": base64.b64encode(b"x").decode()},
    }
    await kpanda.world.create(kinds.SECRETS, secret, namespace=NAMESPACE)
    with refused(Code.ABORTED, "at this moment, as killed"):
        await kpanda.register(frankfurt, name="again")
    # The Secret is as after its grace period: an owner that does not exist has the same effect.
    owner = {"apiVersion": CLUSTER.api_version, "kind": "Cluster", "name": "killed", "uid": str(uuid.uuid4())}
    await kpanda.world.patch(
        kinds.SECRETS, secret_name(identity), {"metadata": {"ownerReferences": [owner]}}, namespace=NAMESPACE
    )

    async def swept() -> bool:
        return not await kpanda.secrets()

    await eventually(swept, "the end of the Secret of nobody")
    await kpanda.register(frankfurt, name="again")


async def test_a_secret_is_given_to_its_cluster_also_when_its_maker_was_killed(
    kpanda: Management, frankfurt: Connection
) -> None:
    created = await kpanda.register(frankfurt, name="owned")
    (name,) = await kpanda.secrets()
    await kpanda.world.patch(kinds.SECRETS, name, {"metadata": {"ownerReferences": None}}, namespace=NAMESPACE)

    async def owned() -> bool:
        found = await kpanda.world.get(kinds.SECRETS, name, namespace=NAMESPACE)
        owners = found["metadata"].get("ownerReferences") or [{}]
        return created.metadata is not None and owners[0].get("uid") == created.metadata.uid

    await eventually(owned, "the owner of the Secret")


async def test_a_removed_cluster_leaves_nothing(kpanda: Management, frankfurt: Connection) -> None:
    async with nothing_is_left(kpanda):
        created = await kpanda.register(frankfurt, name="short")
        await kpanda.until("short", is_ready)
        assert created.metadata is not None
        folder = kpanda.index / created.metadata.uid
        assert folder.exists()
        await kpanda("Clusters.DeleteCluster", Empty, name="short")
        with refused(Code.NOT_FOUND):
            await kpanda("Clusters.GetCluster", Cluster, name="short")

        async def gone() -> bool:
            return not (folder.exists() or await kpanda.secrets())

        await eventually(gone, "the end of what was collected and of the credential")
    with refused(Code.NOT_FOUND):
        await kpanda("Clusters.DeleteCluster", Empty, name="short")


async def test_a_cluster_in_an_instance_is_not_removed(kpanda: Management, frankfurt: Connection) -> None:
    await kpanda.register(frankfurt, name="joined")
    membership = {"metadata": {"name": "joined"}, "spec": {"instance": "somewhere"}}
    resource = kpanda.memberships
    await kpanda.world.create(resource, membership)
    # The API server sees the membership with a delay.
    await eventually(lambda: refusal_of(kpanda, "joined"), "the refusal")

    async def instance_is_shown() -> bool:
        shown = await kpanda("Clusters.GetCluster", Cluster, name="joined")
        return shown.status is not None and shown.status.instance == "somewhere"

    await eventually(instance_is_shown, "the instance of the cluster")
    with refused(Code.FAILED_PRECONDITION, "belongs to instance somewhere: remove it from there first"):
        await kpanda("Clusters.DeleteCluster", Empty, name="joined")
    await kpanda.world.delete(resource, "joined")

    async def may_go() -> bool:
        return not await refusal_of(kpanda, "joined")

    await eventually(may_go, "the end of the refusal")


async def refusal_of(kpanda: Management, name: str) -> bool:
    """Whether the removal of a cluster would be refused at this moment."""
    options = msgspec.json.encode({"dryRun": ["All"]})
    headers = {"Content-Type": "application/json"}
    reply = await kpanda.world.request("DELETE", CLUSTER.path(name=name), body=options, headers=headers)
    return reply.status == 403
