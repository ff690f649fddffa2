"""Our taints of a cluster are merged with those that Karmada sets."""

from typing import Any

from kairship.instances.membership.taints import OURS, Taint, patch_for, tainted_from_the_start

KARMADAS = {"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
GOLD = Taint("tier", "NoSchedule", "gold")


def cluster(*taints: dict[str, Any], ours: str = "") -> dict[str, Any]:
    annotations = {OURS: ours} if ours else {}
    return {"metadata": {"resourceVersion": "7", "annotations": annotations}, "spec": {"taints": list(taints)}}


def written(found: dict[str, Any], *wanted: Taint) -> list[dict[str, Any]]:
    patch = patch_for(found, wanted)
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7"
    taints: list[dict[str, Any]] = patch["spec"]["taints"] or []
    return taints


def test_ours_come_and_go_and_those_of_others_stay() -> None:
    gold = {"key": "tier", "value": "gold", "effect": "NoSchedule"}
    policy = {"key": "policy", "effect": "NoExecute"}
    assert written(cluster(KARMADAS, policy), GOLD) == [KARMADAS, policy, gold]
    assert written(cluster(KARMADAS, policy, gold, ours="tier:NoSchedule")) == [KARMADAS, policy]
    assert patch_for(cluster(KARMADAS, gold, ours="tier:NoSchedule"), [GOLD]) is None
    assert patch_for(cluster(KARMADAS), []) is None


def test_one_that_stays_keeps_its_time_and_another_value_is_another() -> None:
    since = {"key": "tier", "value": "gold", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    stays, more = Taint("tier", "NoExecute", "gold"), Taint("a", "NoSchedule")
    assert written(cluster(since, ours="tier:NoExecute"), stays, more) == [{"key": "a", "effect": "NoSchedule"}, since]
    changed = Taint("tier", "NoExecute", "silver")
    assert written(cluster(since, ours="tier:NoExecute"), changed) == [
        {"key": "tier", "value": "silver", "effect": "NoExecute"}
    ]


def test_a_new_cluster_is_tainted_from_the_start() -> None:
    made = tainted_from_the_start({"metadata": {"name": "east"}, "spec": {"id": "1"}}, [GOLD])
    assert made["spec"]["taints"] == [{"key": "tier", "value": "gold", "effect": "NoSchedule"}]
    made["metadata"]["resourceVersion"] = "7"
    assert patch_for(made, [GOLD]) is None
