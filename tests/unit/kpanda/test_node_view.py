"""The messages made of nodes, whatever a cluster returns, and the changes that callers may request."""

from typing import Any

import pytest

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import ClusterSpec
from kairship.gen.kairship.kpanda.v1alpha1.node_pb import NodeState
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kpanda.services.clusters.spec_fields import label_changes, refuse_own_labels, spec_fields, taint_fields
from kairship.kpanda.services.nodes.view import node_view
from kairship.rpc.errors import InvalidArgument


@pytest.mark.parametrize(
    "node",
    [
        {"metadata": {"name": "n"}},
        {"metadata": {"name": "n"}, "spec": None, "status": None},
        {"metadata": {"name": "n"}, "spec": [], "status": "ready"},
        {"metadata": {"name": "n"}, "spec": {"taints": {"a": 1}}, "status": {"conditions": [None, 7, {}]}},
        {"metadata": {"name": "n"}, "status": {"addresses": [{"type": 1}], "capacity": {"cpu": 4}, "nodeInfo": []}},
    ],
)
def test_a_node_that_says_little_or_nonsense_is_shown_all_the_same(node: dict[str, Any]) -> None:
    shown = node_view(node, cluster="c")
    assert shown.metadata is not None
    assert (shown.metadata.name, shown.metadata.cluster) == ("n", "c")
    assert shown.state is NodeState.UNKNOWN
    assert shown.roles == ["worker"]


def test_addresses_of_one_kind_stand_together() -> None:
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"}]
    shown = node_view({"metadata": {"name": "n"}, "status": {"addresses": addresses}}, cluster="c")
    assert shown.addresses == {"InternalIP": "10.0.0.1,fd00::1"}


def test_a_spec_that_is_replaced_leaves_nothing_of_the_old_one() -> None:
    fields = spec_fields(ClusterSpec(alias="x", endpoint="https://a:6443/"), whole=True)
    assert fields["alias"] == "x"
    assert fields["endpoint"] == "https://a:6443"
    assert all(fields[name] is None for name in ("provider", "region", "zones", "roles", "managedBy", "taints"))
    assert spec_fields(ClusterSpec(alias="x")) == {"alias": "x"}


def test_contradictions_are_refused() -> None:
    taint = Taint(key="a", effect=TaintEffect.NoSchedule)
    with pytest.raises(InvalidArgument, match="twice"):
        taint_fields([taint, Taint(key="a", value="b", effect=TaintEffect.NoSchedule)])
    assert len(taint_fields([taint, Taint(key="a", effect=TaintEffect.NoExecute)])) == 2
    with pytest.raises(InvalidArgument, match="set as well"):
        label_changes({"a": "1"}, ["a"])
    assert label_changes({"a": "1"}, ["b"]) == {"a": "1", "b": None}


@pytest.mark.parametrize("key", ["kpanda.io/x", "kairship.io/demo", "a.karmada.io/b"])
def test_labels_of_the_platform_are_its_own(key: str) -> None:
    with pytest.raises(InvalidArgument, match="platform itself"):
        refuse_own_labels([key], field="labels")
    refuse_own_labels(["tier", "example.com/x", "notkpanda.io/x"], field="labels")
