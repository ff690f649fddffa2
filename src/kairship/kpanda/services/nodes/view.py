"""Makes `Node` messages of nodes. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Resources
from kairship.gen.kairship.kpanda.v1alpha1.node_pb import Node, NodeState
from kairship.gen.kairship.types.v1alpha1.metadata_pb import Condition, ObjectMeta
from kairship.gen.kairship.types.v1alpha1.taint_pb import Taint, TaintEffect
from kairship.kube import Object
from kairship.rpc.views import LAST_APPLIED
from kairship.wire import ObjectMapper

_MIRROR = ObjectMapper()
_ROLE = "node-role.kubernetes.io/"
_STATES = {"True": NodeState.READY, "False": NodeState.NOT_READY}


def node_view(node: Object, *, cluster: str) -> Node:
    """Fields that a node does not have, or has with an unexpected type, are left out."""
    spec, status = _mapping(node, "spec"), _mapping(node, "status")
    info = _mapping(status, "nodeInfo")
    metadata = _MIRROR.of(ObjectMeta, node.get("metadata"))
    metadata.cluster = cluster
    metadata.annotations.pop(LAST_APPLIED, None)
    return Node(
        metadata=metadata,
        cordoned=spec.get("unschedulable") is True,
        taints=[_taint(each) for each in _list(spec, "taints")],
        state=state_of(node),
        conditions=[_condition(each) for each in _list(status, "conditions")],
        roles=roles_of(metadata.labels),
        addresses=_addresses(_list(status, "addresses")),
        kubelet_version=_text(info, "kubeletVersion"),
        container_runtime=_text(info, "containerRuntimeVersion"),
        operating_system=_text(info, "osImage") or _text(info, "operatingSystem"),
        kernel_version=_text(info, "kernelVersion"),
        architecture=_text(info, "architecture"),
        pod_cidr=_text(spec, "podCIDR"),
        resources=Resources(capacity=_amounts(status, "capacity"), allocatable=_amounts(status, "allocatable")),
    )


def state_of(node: Object) -> NodeState:
    for condition in _list(_mapping(node, "status"), "conditions"):
        if condition.get("type") == "Ready":
            return _STATES.get(str(condition.get("status")), NodeState.UNKNOWN)
    return NodeState.UNKNOWN


def roles_of(labels: Mapping[str, str]) -> list[str]:
    """The roles by the labels that kubectl uses; a node without any is a worker."""
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE)
    return roles or ["worker"]


def _addresses(addresses: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for each in addresses:
        found.setdefault(_text(each, "type"), []).append(_text(each, "address"))
    return {kind: ",".join(texts) for kind, texts in found.items() if kind}


def _taint(taint: Mapping[str, Any]) -> Taint:
    effect = TaintEffect.__members__.get(_text(taint, "effect"), TaintEffect.UNSPECIFIED)
    return Taint(key=_text(taint, "key"), value=_text(taint, "value"), effect=effect)


def _condition(condition: Mapping[str, Any]) -> Condition:
    return Condition(
        type=_text(condition, "type"),
        status=_text(condition, "status"),
        reason=_text(condition, "reason"),
        message=_text(condition, "message"),
        last_transition_time=_text(condition, "lastTransitionTime"),
        last_update_time=_text(condition, "lastHeartbeatTime"),
    )


def _amounts(status: Mapping[str, Any], field: str) -> dict[str, str]:
    return {str(name): str(amount) for name, amount in _mapping(status, field).items()}


def _mapping(obj: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = obj.get(field)
    return found if isinstance(found, dict) else {}


def _list(obj: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    found = obj.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _text(obj: Mapping[str, Any], field: str) -> str:
    found = obj.get(field)
    return found if isinstance(found, str) else ""
