"""Propagation and override policies, of a namespace and of the whole instance.

A propagation policy that objects follow cannot be deleted: what it placed would stay or go by rules that nobody reads.
"""

from typing import Any, TypeVar

import msgspec
from protobuf import Message

from kairship.apiserver.services.objects import metadata_view
from kairship.apiserver.services.resources import Kind
from kairship.apiserver.services.resources.kind import Guard, Placed, Predicate, View
from kairship.apiserver.services.resources.reader import Binding
from kairship.gen.kairship.policy.v1alpha1.override_pb import ClusterOverridePolicy, OverridePolicy
from kairship.gen.kairship.policy.v1alpha1.overriders_pb import JSON, PlaintextOverrider
from kairship.gen.kairship.policy.v1alpha1.propagation_pb import ClusterPropagationPolicy, PropagationPolicy
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.kube import Client, Object, Resource, kinds
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition
from kairship.wire import Mirror

M = TypeVar("M", bound=Message[Any])

_NAMED = 3


def _plaintext(value: dict[str, Any]) -> PlaintextOverrider:
    """Its value may be anything, so it goes as JSON text."""
    raw = JSON(raw=msgspec.json.encode(value["value"])) if "value" in value else None
    return PlaintextOverrider(path=str(value.get("path", "")), operator=str(value.get("operator", "")), value=raw)


_MIRROR = Mirror({ObjectMeta: metadata_view, PlaintextOverrider: _plaintext})


def policy_view(message: type[Message[Any]]) -> View:
    def view(obj: Object, _: Placed) -> Message[Any]:
        return _MIRROR.of(message, obj)

    return view


def selecting(request: Any) -> Predicate | None:
    """Policies that select objects of a kind, or one object of it: by name, or because they name none.

    An override policy without selectors is about everything.
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

    def holds(obj: Object) -> bool:
        selectors = obj.get("spec", {}).get("resourceSelectors")
        return not selectors or any(selects(each) for each in selectors)

    return holds


def unused(label: str, *bindings: Resource) -> Guard:
    """Refuses to delete a policy that bindings follow, which have its id as this label."""

    async def guard(policy: Object, client: Client, call: Call) -> None:
        identity = (policy["metadata"].get("labels") or {}).get(label)
        if not identity:
            return
        users: list[str] = []
        for resource in bindings:
            page = await client.list(
                resource,
                namespace=policy["metadata"].get("namespace") if resource.namespaced else None,
                label_selector=f"{label}={identity}",
                limit=_NAMED + 1,
                as_type=Binding,
                timeout=patience(call),
            )
            users += [_called(binding) for binding in page.items]
        if users:
            named = ", ".join(sorted(users)[:_NAMED]) + (" …" if len(users) > _NAMED else "")
            name = policy["metadata"]["name"]
            raise FailedPrecondition(f"policy {name} is in use by {named}: let another policy select them first")

    return guard


def _called(binding: Binding) -> str:
    target = binding.spec.resource
    return f"{target.kind} {target.namespace}/{target.name}" if target.namespace else f"{target.kind} {target.name}"


def _policy(resource: Resource, message: type[Message[Any]], plural: str, guard: Guard | None = None) -> Kind:
    return Kind(
        resource=resource,
        message=message,
        plural=plural,
        view=policy_view(message),
        filters=(selecting,),
        guard_delete=guard,
    )


PROPAGATION_POLICIES = _policy(
    kinds.PROPAGATION_POLICIES,
    PropagationPolicy,
    "PropagationPolicies",
    unused("propagationpolicy.karmada.io/permanent-id", kinds.RESOURCE_BINDINGS),
)
CLUSTER_PROPAGATION_POLICIES = _policy(
    kinds.CLUSTER_PROPAGATION_POLICIES,
    ClusterPropagationPolicy,
    "ClusterPropagationPolicies",
    unused(
        "clusterpropagationpolicy.karmada.io/permanent-id", kinds.RESOURCE_BINDINGS, kinds.CLUSTER_RESOURCE_BINDINGS
    ),
)
OVERRIDE_POLICIES = _policy(kinds.OVERRIDE_POLICIES, OverridePolicy, "OverridePolicies")
CLUSTER_OVERRIDE_POLICIES = _policy(kinds.CLUSTER_OVERRIDE_POLICIES, ClusterOverridePolicy, "ClusterOverridePolicies")

POLICIES = (
    PROPAGATION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    CLUSTER_OVERRIDE_POLICIES,
)
