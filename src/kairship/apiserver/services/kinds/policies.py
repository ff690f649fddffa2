"""The operations of the Policy service: propagation and override policies, namespaced and cluster-scoped.

A propagation policy that a binding follows cannot be deleted: its objects would stay in their clusters by rules that
cannot be read any more.
"""

from typing import Any, TypeVar

import msgspec
from protobuf import Message

from kairship.apiserver.services.object_views import metadata_view
from kairship.apiserver.services.resources import Create, Delete, Get, GetJSON, Kind, List, OperationTable, Update
from kairship.apiserver.services.resources.kind import DeleteGuard, Predicate, TargetClusters, View
from kairship.apiserver.services.resources.reader import Binding
from kairship.gen.kairship.policy.v1alpha1.override_pb import ClusterOverridePolicy, OverridePolicy
from kairship.gen.kairship.policy.v1alpha1.overriders_pb import JSON, PlaintextOverrider
from kairship.gen.kairship.policy.v1alpha1.propagation_pb import ClusterPropagationPolicy, PropagationPolicy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import Client, Object, Resource, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition
from kairship.wire import ObjectMapper

M = TypeVar("M", bound=Message[Any])

_MAX_NAMED = 3


def _plaintext(value: dict[str, Any]) -> PlaintextOverrider:
    """The value may be of any type, so it is sent as JSON text."""
    raw = JSON(raw=msgspec.json.encode(value["value"])) if "value" in value else None
    return PlaintextOverrider(path=str(value.get("path", "")), operator=str(value.get("operator", "")), value=raw)


_MIRROR = ObjectMapper({ObjectMeta: metadata_view, PlaintextOverrider: _plaintext})


def policy_view(message: type[Message[Any]]) -> View:
    def view(obj: Object, _: TargetClusters) -> Message[Any]:
        return _MIRROR.of(message, obj)

    return view


def selecting(request: Any) -> Predicate | None:
    """Selects the policies that apply to a kind, or to one object of it: a selector without a name matches every name.

    An override policy without selectors applies to everything.
    """
    kind, name = getattr(request, "kind", ""), getattr(request, "kind_name", "")
    if not kind:
        return None

    def selects(selector: dict[str, Any]) -> bool:
        return (
            selector.get("kind") == kind
            and (not request.api_version or selector.get("apiVersion") == request.api_version)
            and (not name or not selector.get("name") or selector.get("name") == name)
        )

    def matches(obj: Object) -> bool:
        selectors = obj.get("spec", {}).get("resourceSelectors")
        return not selectors or any(selects(each) for each in selectors)

    return matches


def refuse_in_use(label: str, *bindings: Resource) -> DeleteGuard:
    """Makes a guard that refuses to delete a policy while bindings carry its permanent id in this label."""

    async def guard(policy: Object, client: Client, call: Call) -> None:
        policy_id = (policy["metadata"].get("labels") or {}).get(label)
        if not policy_id:
            return
        users: list[str] = []
        for resource in bindings:
            page = await client.typed(Binding).list(
                resource,
                namespace=policy["metadata"].get("namespace") if resource.namespaced else None,
                label_selector=f"{label}={policy_id}",
                limit=_MAX_NAMED + 1,
                timeout=patience(call),
            )
            users += [_described(binding) for binding in page.items]
        if users:
            named = ", ".join(sorted(users)[:_MAX_NAMED]) + (" …" if len(users) > _MAX_NAMED else "")
            name = policy["metadata"]["name"]
            raise FailedPrecondition(f"policy {name} is in use by {named}: let another policy select them first")

    return guard


def _described(binding: Binding) -> str:
    target = binding.spec.resource
    return f"{target.kind} {target.namespace}/{target.name}" if target.namespace else f"{target.kind} {target.name}"


def _policy(resource: Resource, message: type[Message[Any]], guard: DeleteGuard | None = None) -> Kind:
    return Kind(
        resource=resource,
        message=message,
        view=policy_view(message),
        filters=(selecting,),
        guard_delete=guard,
    )


PROPAGATION_POLICIES = _policy(
    kinds.PROPAGATION_POLICIES,
    PropagationPolicy,
    refuse_in_use("propagationpolicy.karmada.io/permanent-id", kinds.RESOURCE_BINDINGS),
)
CLUSTER_PROPAGATION_POLICIES = _policy(
    kinds.CLUSTER_PROPAGATION_POLICIES,
    ClusterPropagationPolicy,
    refuse_in_use(
        "clusterpropagationpolicy.karmada.io/permanent-id", kinds.RESOURCE_BINDINGS, kinds.CLUSTER_RESOURCE_BINDINGS
    ),
)
OVERRIDE_POLICIES = _policy(kinds.OVERRIDE_POLICIES, OverridePolicy)
CLUSTER_OVERRIDE_POLICIES = _policy(kinds.CLUSTER_OVERRIDE_POLICIES, ClusterOverridePolicy)

POLICY: OperationTable = {
    "ListPropagationPolicies": List(PROPAGATION_POLICIES),
    "ListInstancePropagationPolicies": List(PROPAGATION_POLICIES),
    "CreatePropagationPolicy": Create(PROPAGATION_POLICIES),
    "GetPropagationPolicy": Get(PROPAGATION_POLICIES),
    "GetPropagationPolicyJSON": GetJSON(PROPAGATION_POLICIES),
    "UpdatePropagationPolicy": Update(PROPAGATION_POLICIES),
    "DeletePropagationPolicy": Delete(PROPAGATION_POLICIES),
    "ListClusterPropagationPolicies": List(CLUSTER_PROPAGATION_POLICIES),
    "CreateClusterPropagationPolicy": Create(CLUSTER_PROPAGATION_POLICIES),
    "GetClusterPropagationPolicy": Get(CLUSTER_PROPAGATION_POLICIES),
    "GetClusterPropagationPolicyJSON": GetJSON(CLUSTER_PROPAGATION_POLICIES),
    "UpdateClusterPropagationPolicy": Update(CLUSTER_PROPAGATION_POLICIES),
    "DeleteClusterPropagationPolicy": Delete(CLUSTER_PROPAGATION_POLICIES),
    "ListOverridePolicies": List(OVERRIDE_POLICIES),
    "ListInstanceOverridePolicies": List(OVERRIDE_POLICIES),
    "CreateOverridePolicy": Create(OVERRIDE_POLICIES),
    "GetOverridePolicy": Get(OVERRIDE_POLICIES),
    "GetOverridePolicyJSON": GetJSON(OVERRIDE_POLICIES),
    "UpdateOverridePolicy": Update(OVERRIDE_POLICIES),
    "DeleteOverridePolicy": Delete(OVERRIDE_POLICIES),
    "ListClusterOverridePolicies": List(CLUSTER_OVERRIDE_POLICIES),
    "CreateClusterOverridePolicy": Create(CLUSTER_OVERRIDE_POLICIES),
    "GetClusterOverridePolicy": Get(CLUSTER_OVERRIDE_POLICIES),
    "GetClusterOverridePolicyJSON": GetJSON(CLUSTER_OVERRIDE_POLICIES),
    "UpdateClusterOverridePolicy": Update(CLUSTER_OVERRIDE_POLICIES),
    "DeleteClusterOverridePolicy": Delete(CLUSTER_OVERRIDE_POLICIES),
}
