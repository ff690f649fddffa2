"""The rules for joining, the views of members, and changes to labels and taints."""

import datetime as dt
from typing import Any

import pytest

from kairship.apiserver.services.cluster.joining import RegisteredClusters, join_refusal
from kairship.apiserver.services.cluster.members import Member
from kairship.apiserver.services.cluster.taints import check_taints, karmada_taints, label_patch
from kairship.apiserver.services.cluster.view import member_phase, member_view, registered_view
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterPhase, ClusterProvider
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.resources import ClusterPhase as OwnPhase
from kairship.resources import (
    ClusterSpec,
    ClusterStatus,
    Coverage,
    DriverName,
    InstanceSpec,
    InstanceState,
    InstanceStatus,
    MembershipPhase,
    MembershipSpec,
    MembershipStatus,
    SecretReference,
)
from kairship.resources.cluster import ClusterResources
from kairship.rpc.errors import InvalidArgument
from kairship.rpc.resource_cache import SeenCluster, SeenInstance, SeenMembership, SeenMetadata

NOW = "2025-06-01T12:00:00Z"
ALL = Coverage(everywhere=True)


def cluster(name: str = "east", *, deleting: bool = False, virtual: bool = False, **status: Any) -> SeenCluster:
    return SeenCluster(
        SeenMetadata(name=name, uid=f"uid-{name}", deletion_timestamp=NOW if deleting else None),
        ClusterSpec(credentials=SecretReference(name="c"), virtual=virtual, provider="AWS_EKS", zones=("a", "b")),
        ClusterStatus(**({"phase": OwnPhase.RUNNING} | status)),
    )


def membership(name: str = "east", *, deleting: bool = False, **status: Any) -> SeenMembership:
    metadata = SeenMetadata(name=name, deletion_timestamp=NOW if deleting else None)
    return SeenMembership(metadata, MembershipSpec(instance="prod"), MembershipStatus(**status))


def instance(*, state: InstanceState = InstanceState.RUNNING, deleting: bool = False) -> SeenInstance:
    metadata = SeenMetadata(name="prod", deletion_timestamp=NOW if deleting else None)
    return SeenInstance(metadata, InstanceSpec(driver=DriverName.LOCAL), InstanceStatus(state=state))


def registered(
    clusters: list[SeenCluster], memberships: list[SeenMembership], seen: Coverage, attachable: Coverage
) -> RegisteredClusters:
    return RegisteredClusters.of(clusters, memberships, seen=seen, attachable=attachable, global_cluster="g")


@pytest.mark.parametrize(
    ("clusters", "memberships", "to", "reason"),
    [
        ([cluster()], [], instance(), ""),
        ([cluster()], [], None, ""),
        ([], [], instance(), "register it first"),
        ([cluster("k-prod", virtual=True), cluster("other")], [], instance(), "register it first"),
        ([cluster()], [membership()], instance(), "belongs to instance prod"),
        ([cluster()], [membership(deleting=True)], instance(), "is leaving instance prod"),
        ([cluster(deleting=True)], [], instance(), "being removed"),
        ([cluster(phase=OwnPhase.FAILED)], [], instance(), "has not been verified"),
        ([cluster(id="1"), cluster("twin", id="1")], [membership("twin")], instance(), "same cluster as twin"),
        ([cluster(id="1"), cluster("twin", id="1")], [], instance(), ""),
        ([cluster(id="g")], [], instance(), "control plane of this platform"),
        ([cluster(id="1"), cluster("k-prod", virtual=True, id="1")], [], instance(), "control plane of this platform"),
        ([cluster()], [], instance(deleting=True), "instance prod is being deleted"),
        ([cluster()], [], instance(state=InstanceState.UNAVAILABLE), "instance prod is not running"),
    ],
)
def test_why_a_cluster_may_not_join(
    clusters: list[SeenCluster], memberships: list[SeenMembership], to: SeenInstance | None, reason: str
) -> None:
    refusal = join_refusal("east", to, registered(clusters, memberships, ALL, ALL))
    assert reason in refusal
    assert bool(refusal) is bool(reason)


def test_clusters_of_others_are_not_disclosed() -> None:
    """For a caller with another instance a cluster of prod does not exist, and its twin is refused without its name."""
    clusters = [cluster(id="1"), cluster("twin", id="1"), cluster("free")]
    own = Coverage(instances=frozenset({"other"}), clusters=frozenset({"uid-east"}))
    found = registered(clusters, [membership("twin")], own, own)
    assert sorted(found.visible()) == ["east"]
    assert join_refusal("east", None, found) == "it is the same cluster as one that has joined already"
    missing = join_refusal("missing", None, found)
    assert join_refusal("twin", None, found) == missing.replace("missing", "twin")
    assert join_refusal("free", None, found) == missing.replace("missing", "free")
    assert registered(clusters, [], Coverage(), ALL).visible() == {}


def test_a_right_on_an_instance_is_none_on_a_cluster() -> None:
    """Whoever may join clusters to an instance needs a right on the cluster too, as a holder of its workspace has."""
    admin = Coverage(instances=frozenset({"prod"}))
    through_workspace = Coverage(clusters=frozenset({"uid-east"}))
    assert not registered([cluster()], [], admin, admin).visible()
    found = registered([cluster(), cluster("other")], [], through_workspace, admin)
    assert sorted(found.visible()) == ["east"]
    assert "kpanda.clusters.attach is needed" in join_refusal("east", instance(), found)
    found = registered([cluster(), cluster("other")], [], through_workspace, through_workspace)
    assert join_refusal("east", instance(), found) == ""
    assert not found.is_attachable("other")
    assert sorted(registered([cluster()], [membership()], admin, admin).visible()) == ["east"]


def karmada(*, ready: str | None = "True", reason: str = "ClusterReady", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": reason}] if ready else []
    return {
        "metadata": {"name": "east", "labels": {"a": "b"}},
        "spec": {"provider": "aws", "region": "r", "zones": ["x"], "apiEndpoint": "https://e", **spec},
        "status": {"conditions": conditions, "kubernetesVersion": "v1.35.4"},
    }


@pytest.mark.parametrize(
    ("member", "phase"),
    [
        ({"karmada": karmada()}, ClusterPhase.RUNNING),
        ({"karmada": karmada(ready="False", reason="ClusterNotReady")}, ClusterPhase.FAILED),
        ({"karmada": karmada(ready="False", reason="ClusterNotReachable")}, ClusterPhase.UNKNOWN),
        ({"karmada": karmada(ready="Unknown")}, ClusterPhase.UNKNOWN),
        ({"karmada": karmada(ready=None)}, ClusterPhase.CREATING),
        ({"membership": membership()}, ClusterPhase.CREATING),
        ({"membership": membership(phase=MembershipPhase.FAILED)}, ClusterPhase.FAILED),
        ({"karmada": karmada(), "membership": membership(deleting=True)}, ClusterPhase.DELETING),
    ],
)
def test_the_phase_of_a_member(member: dict[str, Any], phase: ClusterPhase) -> None:
    assert member_phase(Member(name="east", instance="prod", **member)) is phase


def test_a_managed_member_has_the_labels_and_taints_of_container_management() -> None:
    own = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}
    stale = {"key": "old", "effect": "NoSchedule"}
    alone = member_view(Member(name="east", instance="prod", karmada=karmada(taints=[own, stale])))
    assert alone.spec is not None
    assert [taint.key for taint in alone.spec.taints] == ["cluster.karmada.io/not-ready", "old"]
    assert (alone.spec.provider, alone.spec.zone) == (ClusterProvider.GENERIC, "x")
    ours = member_view(
        Member(
            name="east",
            instance="prod",
            karmada=karmada(taints=[own, stale]),
            membership=membership(),
            registered=cluster(),
        )
    )
    assert ours.spec is not None
    assert [taint.key for taint in ours.spec.taints] == ["cluster.karmada.io/not-ready"]
    assert (ours.spec.provider, ours.spec.zone, ours.spec.api_endpoint) == (ClusterProvider.AWS_EKS, "a,b", "https://e")
    assert ours.metadata is not None
    assert ours.metadata.labels == {}


def test_usage_is_a_percentage_of_the_allocatable_amount() -> None:
    resources = ClusterResources(allocatable={"cpu": "4", "memory": "8Gi"}, used={"cpu": "500m", "memory": "2Gi"})
    shown = registered_view(cluster(resources=resources))
    assert shown.status is not None
    assert (shown.status.cpu_usage, shown.status.memory_usage) == (12.5, 25.0)


def test_taints_of_karmada_are_left_to_karmada() -> None:
    sent = [
        Taint(key="cluster.karmada.io/not-ready", effect=TaintEffect.NoExecute),
        Taint(key="a", value="b", effect=TaintEffect.NoSchedule),
    ]
    wanted = check_taints(sent)
    assert wanted == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    current = [
        {"key": "cluster.karmada.io/not-ready", "effect": "NoExecute", "timeAdded": NOW},
        {"key": "a", "value": "b", "effect": "NoSchedule", "timeAdded": NOW},
        {"key": "gone", "effect": "NoSchedule"},
    ]
    assert karmada_taints(current, wanted) == current[:2]
    for wrong in ([Taint(key="a")], [Taint(effect=TaintEffect.NoSchedule)], [*sent, sent[1]]):
        with pytest.raises(InvalidArgument):
            check_taints(wrong)


def test_callers_do_not_change_system_labels() -> None:
    current = {"a": "1", "b": "2", "cluster.karmada.io/x": "3", "kairship.io/y": "4"}
    wanted = {"a": "1", "c": "5", "kairship.io/z": "6"}
    assert label_patch(current, wanted) == {"a": "1", "b": None, "c": "5"}


def test_times_are_utc_seconds() -> None:
    metadata = SeenMetadata(name="x", creation_timestamp=dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
    shown = registered_view(SeenCluster(metadata, ClusterSpec(credentials=SecretReference(name="c"))))
    assert shown.metadata is not None
    assert shown.metadata.creation_timestamp == 1704067200
