"""Changes of registered clusters: their spec, new credentials, and changes that others make with kubectl."""

import base64
import uuid
from functools import partial
from typing import Any

import msgspec
import pytest
from support.container_management import CLUSTER, Management, condition, is_ready, kubeconfig
from support.our_kinds import delete_when_allowed
from support.relay import relay_to
from support.services import refused
from support.waiting import eventually
from yarl import URL

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase
from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.gen.kairship.kpanda.v1alpha1.node_pb import ListNodesResponse, Node
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    CreateClusterKubeconfigResponse,
    GetClusterSummaryResponse,
    ListClustersResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import WatchEventType
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kube import Client, Connection, Forbidden, Object, kinds
from kairship.resources import NAMESPACE, Coverage
from kairship.rpc.errors import Code
from kairship.rpc.sight import EVERYTHING, Sight

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def put_secret(kpanda: Management, name: str, connection: Connection | bytes) -> None:
    content = connection.to_kubeconfig(name="x") if isinstance(connection, Connection) else connection
    secret: Object = {"metadata": {"name": name}, "data": {"kubeconfig": base64.b64encode(content).decode()}}
    await kpanda.world.apply(kinds.SECRETS, secret, namespace=NAMESPACE, field_manager="test")


async def apply_cluster(kpanda: Management, name: str, secret: str, **spec: object) -> None:
    """Creates a Cluster, as kubectl does."""
    cluster = {"metadata": {"name": name}, "spec": {"credentials": {"name": secret}, **spec}}
    await kpanda.world.create(CLUSTER, cluster)


async def test_what_people_decide_can_be_changed(kpanda: Management, frankfurt: Connection) -> None:
    await kpanda.register(
        frankfurt, name="one", spec=ClusterSpec(alias="Old", region="r1"), labels={"a": "1", "b": "2"}
    )
    collected = await followers_of(kpanda, "one")
    taint = Taint(key="maintenance", effect=TaintEffect.NoSchedule)
    spec = ClusterSpec(alias="New", zones=["z1", "z2"], provider="AWS_EKS", roles=["edge"], taints=[taint])
    changed = await kpanda("Clusters.UpdateCluster", Cluster, name="one", spec=spec)
    assert changed.spec == spec
    changed = await kpanda("Clusters.UpdateClusterLabels", Cluster, name="one", set={"c": "3"}, remove=["a", "none"])
    assert changed.metadata is not None
    assert changed.metadata.labels == {"b": "2", "c": "3"}
    with refused(Code.INVALID_ARGUMENT, "set as well"):
        await kpanda("Clusters.UpdateClusterLabels", Cluster, name="one", set={"c": "3"}, remove=["c"])
    with refused(Code.INVALID_ARGUMENT, "by the platform itself"):
        await kpanda("Clusters.UpdateClusterLabels", Cluster, name="one", set={"x.kpanda.io/credential-of": "two"})
    with refused(Code.ABORTED, "since it was read"):
        await kpanda("Clusters.UpdateCluster", Cluster, name="one", spec=spec, resource_version="1")
    with refused(Code.NOT_FOUND):
        await kpanda("Clusters.UpdateCluster", Cluster, name="none", spec=spec)
    found = await kpanda("Clusters.ListClusters", ListClustersResponse, zone="z2", label_selector="c=3")
    assert [item.metadata.name for item in found.items if item.metadata] == ["one"]
    assert (await kpanda("Clusters.ListClusters", ListClustersResponse, region="r1")).items == []
    assert await followers_of(kpanda, "one") == collected, "the collection went on meanwhile"


async def followers_of(kpanda: Management, name: str) -> set[int]:
    """The followers of a cluster's kinds, as soon as all of them are followed."""
    stored = await kpanda.until(name, is_ready)
    return {id(each) for each in kpanda.assembly.collector.followers(stored["metadata"]["uid"])}


async def test_a_new_credential_is_verified_and_used_at_once(
    kpanda: Management, frankfurt: Connection, second: Connection
) -> None:
    await kpanda.register(frankfurt, name="one")
    before = await kpanda.until("one", is_ready)
    (secret,) = await kpanda.secrets()
    held = (await kpanda.world.get(kinds.SECRETS, secret, namespace=NAMESPACE))["data"]

    with refused(Code.FAILED_PRECONDITION, "another cluster than one"):
        await kpanda("Clusters.UpdateClusterCredential", Cluster, name="one", credential=kubeconfig(second))
    wrong = msgspec.structs.replace(frankfurt, client_cert=None, client_key=None, token="wrong")
    with refused(Code.FAILED_PRECONDITION, "does not accept"):
        await kpanda("Clusters.UpdateClusterCredential", Cluster, name="one", credential=kubeconfig(wrong))
    assert (await kpanda.world.get(kinds.SECRETS, secret, namespace=NAMESPACE))["data"] == held

    async with Client(frankfurt) as client:
        token = await admin_token(client)
    renewed = msgspec.structs.replace(frankfurt, client_cert=None, client_key=None, token=token)
    shown = await kpanda("Clusters.UpdateClusterCredential", Cluster, name="one", credential=kubeconfig(renewed))
    assert shown.status is not None
    # The reply waits for the status for a few seconds only.
    assert shown.status.phase in {ClusterPhase.RUNNING, ClusterPhase.UPDATING}
    written = (await kpanda.world.get(kinds.SECRETS, secret, namespace=NAMESPACE))["metadata"]["resourceVersion"]
    assert int(written) > int(before["status"]["credentials"]["resourceVersion"])

    def is_verified(found: Object) -> bool:
        version = found["status"]["credentials"]["resourceVersion"]
        return is_ready(found) and found["status"]["phase"] == "RUNNING" and int(version) >= int(written)

    await kpanda.until("one", is_verified)


async def admin_token(client: Client) -> str:
    name = f"test-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace="default")
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
    reply = await client.create(
        kinds.SERVICE_ACCOUNTS, {"spec": {}}, namespace="default", name=name, subresource="token"
    )
    token = str(reply["status"]["token"])
    own = msgspec.structs.replace(client.connection, client_cert=None, client_key=None, token=token)
    async with Client(own) as account:  # the API server hears of new rights with a delay
        await eventually(partial(account.list, kinds.NODES), "the rights of the account")
    return token


async def test_a_new_token_is_used_without_beginning_anew(kpanda: Management, frankfurt: Connection) -> None:
    async with Client(frankfurt) as client:
        first, next_one = await admin_token(client), await admin_token(client)
    by_token = msgspec.structs.replace(frankfurt, client_cert=None, client_key=None, token=first)
    created = await kpanda.register(by_token, name="rotated")
    await kpanda.until("rotated", is_ready)
    assert created.metadata is not None
    before = await followers_of(kpanda, "rotated")
    renewed = msgspec.structs.replace(by_token, token=next_one)
    await kpanda("Clusters.UpdateClusterCredential", Cluster, name="rotated", credential=kubeconfig(renewed))

    async def uses_it() -> bool:
        return kpanda.token_in_use("rotated") == next_one

    await eventually(uses_it, "the use of the new token")
    assert await followers_of(kpanda, "rotated") == before
    followers = kpanda.assembly.collector.followers(created.metadata.uid)
    assert not any(each.counters.resyncs for each in followers)


async def test_another_endpoint_must_lead_to_the_same_cluster(
    kpanda: Management, frankfurt: Connection, second: Connection
) -> None:
    await kpanda.register(frankfurt, name="one")
    await kpanda.until("one", is_ready)  # from then on it is known which cluster it is
    with refused(Code.FAILED_PRECONDITION):
        await kpanda("Clusters.UpdateCluster", Cluster, name="one", spec=ClusterSpec(endpoint=second.server))
    url = URL(frankfurt.server)
    async with relay_to(str(url.host), url.port or 0) as relay:
        spec = ClusterSpec(endpoint=f"https://{relay.address}")
        await kpanda("Clusters.UpdateCluster", Cluster, name="one", spec=spec)
        stored = await kpanda.until(
            "one", lambda cluster: is_ready(cluster) and cluster["status"]["endpoint"] == spec.endpoint
        )
        assert stored["spec"]["endpoint"] == spec.endpoint

        # When it dies, it is reported as unreachable within seconds, and later as reachable again.
        relay.refuse()
        relay.reset()
        dead = await kpanda.until("one", lambda cluster: cluster["status"]["phase"] == "UNKNOWN", timeout=15)
        assert condition(dead, "Reachable")[0] == "False"
        assert condition(dead, "Ready") == ("False", "NotReachable")
        assert dead["status"]["nodes"]["total"] > 0, "the last known figures are kept"
        await relay.heal()
        await kpanda.until("one", is_ready)


async def test_one_dead_cluster_holds_up_no_other(
    kpanda: Management, frankfurt: Connection, second: Connection
) -> None:
    url = URL(second.server)
    async with relay_to(str(url.host), url.port or 0) as relay:
        relay.hold()
        await put_secret(kpanda, "silent", msgspec.structs.replace(second, server=f"https://{relay.address}"))
        for number in range(20):
            await apply_cluster(kpanda, f"silent-{number}", "silent")
        await kpanda.register(frankfurt, name="well")
        # Each of the silent ones is given up after six seconds: one after the other, they would take two minutes.
        await kpanda.until("well", is_ready, timeout=60)

        def is_known_to_be_dead(found: Object) -> bool:
            told = condition(found, "Reachable"), condition(found, "CredentialsValid")
            phase = found.get("status", {}).get("phase")
            return phase == "UNKNOWN" and told == (("False", "TimedOut"), ("Unknown", "NotVerified"))

        await kpanda.until("silent-3", is_known_to_be_dead, timeout=60)


async def test_what_is_applied_with_kubectl_is_held_to_the_same(
    kpanda: Management, frankfurt: Connection, second: Connection
) -> None:
    await apply_cluster(kpanda, "first", "made-by-hand")
    await kpanda.until("first", lambda each: condition(each, "CredentialsValid") == ("False", "SecretMissing"))
    await put_secret(kpanda, "made-by-hand", b"apiVersion: v1\nkind: Config\n")
    await kpanda.until("first", lambda each: condition(each, "CredentialsValid") == ("False", "KubeconfigRefused"))
    await put_secret(kpanda, "made-by-hand", frankfurt)
    await kpanda.until("first", is_ready)

    # The same cluster is registered once more, and then the Secret leads to another cluster.
    await apply_cluster(kpanda, "again", "made-by-hand")
    again = await kpanda.until("again", lambda each: condition(each, "CredentialsValid") == ("False", "Duplicate"))
    assert "id" not in again["status"]
    assert not kpanda.is_collected("again")
    with refused(Code.ALREADY_EXISTS, "as first"):
        await kpanda.register(frankfurt, name="third")
    assert kpanda.is_collected("first")
    await put_secret(kpanda, "made-by-hand", second)
    other = await kpanda.until("first", lambda each: condition(each, "CredentialsValid") == ("False", "OtherCluster"))
    assert other["status"]["phase"] == "FAILED"

    async def left() -> bool:
        return not kpanda.is_collected("first")

    await eventually(left, "the end of its collection")


async def test_virtual_clusters_are_hidden_and_changed_by_nobody(kpanda: Management, second: Connection) -> None:
    await put_secret(kpanda, "virtual", second)
    await apply_cluster(kpanda, "k-demo", "virtual", virtual=True)
    await kpanda.until("k-demo", is_ready)
    assert (await kpanda("Clusters.ListClusters", ListClustersResponse)).items == []
    found = await kpanda("Clusters.ListClusters", ListClustersResponse, include_virtual=True)
    (shown,) = found.items
    assert shown.status is not None
    assert (shown.status.virtual, shown.status.instance) == (True, "demo")
    assert (await kpanda("Clusters.GetClusterSummary", GetClusterSummaryResponse)).total == 0
    calls: dict[str, dict[str, Any]] = {
        "UpdateCluster": {"spec": ClusterSpec(alias="x")},
        "UpdateClusterLabels": {"set": {"a": "b"}},
        "UpdateClusterCredential": {"credential": kubeconfig(second)},
        "DeleteCluster": {},
        "CreateClusterKubeconfig": {},
    }
    for name, fields in calls.items():
        with refused(Code.FAILED_PRECONDITION, "stands for an instance"):
            await kpanda(f"Clusters.{name}", Cluster, name="k-demo", **fields)


async def test_a_caller_sees_clusters_of_instances_within_reach(
    kpanda: Management, frankfurt: Connection, second: Connection
) -> None:
    await kpanda.register(frankfurt, name="mine")
    await kpanda.register(second, name="theirs")
    await kpanda.world.create(kpanda.memberships, {"metadata": {"name": "mine"}, "spec": {"instance": "a"}})
    try:
        kpanda.sight = Sight(coverage=Coverage(instances=frozenset({"a"})))

        async def only_mine() -> bool:
            found = await kpanda("Clusters.ListClusters", ListClustersResponse)
            return [item.metadata.name for item in found.items if item.metadata] == ["mine"]

        await eventually(only_mine, "what is within reach")
        with refused(Code.NOT_FOUND, "there is no cluster theirs"):
            await kpanda("Clusters.GetCluster", Cluster, name="theirs")
        assert (await kpanda("Clusters.GetClusterSummary", GetClusterSummaryResponse)).total == 1
        kpanda.sight = Sight()
        assert (await kpanda("Clusters.ListClusters", ListClustersResponse)).items == []
        with refused(Code.NOT_FOUND, "there is no cluster mine"):
            await kpanda("Clusters.GetCluster", Cluster, name="mine")
    finally:
        kpanda.sight = EVERYTHING
        await kpanda.world.delete(kpanda.memberships, "mine")
        await delete_when_allowed(kpanda.world, CLUSTER, "mine")


async def test_a_watch_tells_what_comes_changes_and_goes(kpanda: Management, frankfurt: Connection) -> None:
    events = kpanda.watch("Clusters.WatchClusters", label_selector="tier=edge")
    assert (await anext(events)).type is WatchEventType.SYNCED
    await kpanda.register(frankfurt, name="seen", labels={"tier": "edge"})
    event = await anext(events)
    assert event.type is WatchEventType.ADDED
    while event.cluster.status.phase is not ClusterPhase.RUNNING:  # a slow reader gets the latest state at once
        event = await anext(events)
    await kpanda("Clusters.UpdateClusterLabels", Cluster, name="seen", remove=["tier"])
    while (event := await anext(events)).type is not WatchEventType.DELETED:
        assert event.type is WatchEventType.MODIFIED
    await events.aclose()


async def test_a_kubeconfig_is_the_callers_own_and_ends(kpanda: Management, frankfurt: Connection) -> None:
    await kpanda.register(frankfurt, name="one")
    await kpanda.until("one", is_ready)
    issued = await kpanda(
        "Clusters.CreateClusterKubeconfig", CreateClusterKubeconfigResponse, name="one", expiration_seconds=600
    )
    assert "client-key-data" not in issued.kubeconfig
    async with Client(Connection.from_kubeconfig(issued.kubeconfig.encode())) as person, Client(frankfurt) as admin:
        # The API server hears of new rights with a delay.
        await eventually(partial(person.list, kinds.PODS), "the rights of the person")
        await person.list(kinds.SECRETS, namespace="default")
        with pytest.raises(Forbidden):
            await person.create(kinds.CLUSTER_ROLE_BINDINGS, {"metadata": {"name": "up"}, "roleRef": {}})
        with pytest.raises(Forbidden):
            await person.patch(kinds.NODES, "x", {"spec": {}})
        accounts = await admin.list(kinds.SERVICE_ACCOUNTS, namespace=NAMESPACE)
    (mine,) = [each for each in accounts.items if each["metadata"]["name"].startswith("kairship-user-")]
    assert mine["metadata"]["annotations"]["kairship.io/user"] == "alice"


async def test_nodes_are_read_in_the_index_and_never_older_than_what_the_caller_changed(
    kpanda: Management, frankfurt: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kpanda.register(frankfurt, name="one")
    await kpanda.until("one", is_ready)
    async with Client(frankfurt) as admin:
        names = {node["metadata"]["name"] for node in (await admin.list(kinds.NODES)).items}
    some = min(names)

    async def listed(**asked: Any) -> set[str]:
        found = await kpanda("Nodes.ListNodes", ListNodesResponse, cluster="one", page_size=-1, **asked)
        return {node.metadata.name for node in found.items if node.metadata}

    async def answered_by_the_index() -> bool:  # it is, unless a busy machine has delayed the heartbeat
        assert await listed() == names
        listed_age = kpanda.age or 0.0
        shown = await kpanda("Nodes.GetNode", Node, cluster="one", name=some)
        assert shown.metadata is not None
        return 0 < listed_age < 15 and (kpanda.age or 0.0) > 0

    await eventually(answered_by_the_index, "nodes from the index")
    key = f"test-{uuid.uuid4().hex[:6]}"
    for number in range(10):
        changes = {"cluster": "one", "name": some, "set": {key: str(number)}}
        await kpanda("Nodes.UpdateNodeLabels", Node, **changes)
        assert await listed(label_selector=f"{key}={number}") == {some}
        shown = await kpanda("Nodes.GetNode", Node, cluster="one", name=some)
        assert shown.metadata is not None
        assert shown.metadata.labels[key] == str(number)
    await kpanda("Nodes.UpdateNodeLabels", Node, cluster="one", name=some, remove=[key])
    assert await listed(label_selector=key) == set()
    with refused(Code.NOT_FOUND, "has no node"):
        await kpanda("Nodes.GetNode", Node, cluster="one", name="nowhere")
    # An index whose last heartbeat is too old is not read.
    monkeypatch.setattr(kpanda.assembly.stores.current, "_max_age", -1.0)
    assert await listed() == names
    assert kpanda.age == 0
