"""The RBAC rules of the collector's account, and how Karmada should know a cluster of container management."""

from typing import Any

import msgspec
import pytest

from kairship.controllers.global_cluster import RegisteredCluster
from kairship.controllers.instance_cache import KindDefinition
from kairship.controllers.membership.desired import join_of
from kairship.controllers.virtual_cluster.collector_account import rules_for
from kairship.instances.membership import Taint
from kairship.kube import Catalogue, Resource, Unavailable, kinds
from kairship.kube.discovery import ServedResource

READABLE = frozenset({"get", "list", "watch"})


def served(resource: Resource, *, verbs: frozenset[str] = READABLE) -> ServedResource:
    return ServedResource(resource=resource, verbs=verbs, subresources=frozenset({"proxy", "status"}))


def definition(group: str, plural: str) -> KindDefinition:
    spec = {"group": group, "names": {"plural": plural, "kind": plural.title()}, "scope": "Namespaced"}
    return msgspec.convert({"metadata": {"name": f"{plural}.{group}"}, "spec": spec}, KindDefinition)


def readable(rules: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(group, each) for rule in rules for group in rule.get("apiGroups", ()) for each in rule["resources"]}


def test_every_kind_by_name_and_no_part_of_any() -> None:
    catalogue = Catalogue(
        resources=(
            served(kinds.CLUSTERS),
            served(kinds.SECRETS),
            served(kinds.TOKEN_REVIEWS, verbs=frozenset({"create"})),
        ),
        failed={},
    )
    rules = rules_for(catalogue, [definition("example.org", "widgets")], known=())
    assert readable(rules) == {("cluster.karmada.io", "clusters"), ("", "secrets"), ("example.org", "widgets")}
    assert {verb for rule in rules for verb in rule["verbs"]} == READABLE
    assert "*" not in str([rule for rule in rules if "resources" in rule])
    assert "/proxy" not in str(rules)


def test_of_a_group_that_does_not_answer_what_was_known_stays() -> None:
    before = rules_for(Catalogue(resources=(served(kinds.CLUSTERS), served(kinds.SECRETS)), failed={}), (), known=())
    silent = Catalogue(resources=(), failed={"cluster.karmada.io/v1alpha1": Unavailable.__new__(Unavailable)})
    assert readable(rules_for(silent, (), known=before)) == {("cluster.karmada.io", "clusters")}


@pytest.mark.parametrize("label", ["kairship.io/x", "a.kairship.io/x", "kpanda.io/x", "cluster.kpanda.io/x"])
def test_what_karmada_is_told_of_a_cluster(label: str) -> None:
    cluster = msgspec.convert(
        {
            "metadata": {"name": "east", "labels": {label: "1", "tier": "gold", "example.org/x": "2"}},
            "spec": {
                "credentials": {"name": "s"},
                "region": "r",
                "zones": ["a"],
                "taints": [{"key": "k", "effect": "NoExecute", "value": "v"}],
            },
            "status": {"provider": "guessed"},
        },
        RegisteredCluster,
    )
    join = join_of(cluster)
    assert join.labels == {"tier": "gold", "example.org/x": "2"}
    assert (join.provider, join.region, join.zones) == ("guessed", "r", ("a",))
    assert join.taints == (Taint("k", "NoExecute", "v"),)
