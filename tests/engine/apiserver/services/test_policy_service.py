"""The Policy service: every operation, and the guard of policies that are in use."""

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from protobuf.wkt import Empty
from support.services import Api, refused
from support.waiting import eventually

from kairship.gen.kairship.policy.v1alpha1.propagation_pb import (
    CreateClusterPropagationPolicyResponse,
    CreatePropagationPolicyResponse,
    GetPropagationPolicyJSONResponse,
    GetPropagationPolicyResponse,
    ListInstancePropagationPoliciesResponse,
    ListPropagationPoliciesResponse,
    UpdatePropagationPolicyResponse,
)
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy, SortDir
from kairship.kube import kinds
from kairship.rpc.errors import Code

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEC: dict[str, Any] = {
    "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"a": "b"}}}],
    "priority": 7,
    "placement": {"clusterAffinities": [{"affinityName": "first", "clusterNames": ["frankfurt"]}]},
}


@pytest_asyncio.fixture(loop_scope="module")
async def where(api: Api) -> AsyncIterator[dict[str, str]]:
    name = f"rules-{uuid.uuid4().hex[:8]}"
    await (await api.instance()).create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield {"instance": "demo", "namespace": name}
    await (await api.instance()).delete(kinds.NAMESPACES, name)


def policy(kind: str, name: str, spec: dict[str, Any]) -> str:
    return json.dumps(
        {"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )


async def _create(api: Api, where: dict[str, str], name: str, spec: dict[str, Any]) -> None:
    data = policy("PropagationPolicy", name, spec)
    await api("Policy.CreatePropagationPolicy", CreatePropagationPolicyResponse, data=data, **where)


async def test_a_propagation_policy_from_its_creation_to_its_end(api: Api, where: dict[str, str]) -> None:
    await _create(api, where, "rule", SPEC)
    whole = await api("Policy.GetPropagationPolicyJSON", GetPropagationPolicyJSONResponse, name="rule", **where)
    document = json.loads(whole.data)
    document["spec"]["priority"] = 9
    await api(
        "Policy.UpdatePropagationPolicy",
        UpdatePropagationPolicyResponse,
        name="rule",
        data=json.dumps(document),
        **where,
    )
    shown = await api("Policy.GetPropagationPolicy", GetPropagationPolicyResponse, name="rule", **where)
    assert shown.propagation_policy is not None
    assert shown.propagation_policy.spec is not None
    assert shown.propagation_policy.spec.priority == 9
    with refused(Code.ABORTED):
        await api(
            "Policy.UpdatePropagationPolicy",
            UpdatePropagationPolicyResponse,
            name="rule",
            data=json.dumps(document),
            **where,
        )
    await api("Policy.DeletePropagationPolicy", Empty, name="rule", **where)

    async def gone() -> bool:  # Karmada cleans up first
        left = await api("Policy.ListPropagationPolicies", ListPropagationPoliciesResponse, **where)
        return not left.items

    await eventually(gone, "the policy gone")
    with refused(Code.NOT_FOUND):
        await api("Policy.DeletePropagationPolicy", Empty, name="rule", **where)


async def test_what_karmadas_webhook_refuses_is_the_callers_mistake(api: Api, where: dict[str, str]) -> None:
    wrong = {**SPEC, "placement": {**SPEC["placement"], "clusterAffinity": {"clusterNames": ["x"]}}}
    with refused(Code.INVALID_ARGUMENT, "clusterAffinities"):
        await _create(api, where, "wrong", wrong)


async def test_a_policy_in_use_is_not_deleted(api: Api, where: dict[str, str]) -> None:
    instance, namespace = await api.instance(), where["namespace"]
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "used"}
    await instance.create(kinds.CONFIGMAPS, {"metadata": {"name": "used"}}, namespace=namespace)
    spec = {"resourceSelectors": [selector], "placement": {"clusterAffinity": {"clusterNames": ["oregon"]}}}
    await _create(api, where, "rule", spec)

    async def follows() -> bool:
        page = await instance.list(kinds.RESOURCE_BINDINGS, namespace=namespace)
        return bool(page.items)

    await eventually(follows, "a binding")
    with refused(Code.FAILED_PRECONDITION, f"in use by ConfigMap {namespace}/used"):
        await api("Policy.DeletePropagationPolicy", Empty, name="rule", **where)
    await instance.delete(kinds.CONFIGMAPS, "used", namespace=namespace)
    # The garbage collector would delete it too, but later.
    await instance.delete(kinds.RESOURCE_BINDINGS, "used-configmap", namespace=namespace, missing_ok=True)

    async def unused() -> bool:
        page = await instance.list(kinds.RESOURCE_BINDINGS, namespace=namespace)
        return not page.items

    await eventually(unused, "the binding gone")
    await api("Policy.DeletePropagationPolicy", Empty, name="rule", **where)


async def test_policies_are_found_by_what_they_select(api: Api, where: dict[str, str]) -> None:
    for name, selector in (
        ("all-deployments", {"apiVersion": "apps/v1", "kind": "Deployment"}),
        ("one-deployment", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}),
        ("jobs", {"apiVersion": "batch/v1", "kind": "Job"}),
    ):
        await _create(api, where, name, {"resourceSelectors": [selector], "placement": {}})

    async def listed(**request: Any) -> list[str]:
        reply = await api(
            "Policy.ListPropagationPolicies",
            ListPropagationPoliciesResponse,
            **where,
            sort_by=SortBy.field_name,
            sort_dir=SortDir.asc,
            **request,
        )
        return [item.metadata.name for item in reply.items if item.metadata]

    assert await listed() == ["all-deployments", "jobs", "one-deployment"]
    assert await listed(kind="Deployment") == ["all-deployments", "one-deployment"]
    assert await listed(kind="Deployment", kind_name="web") == ["all-deployments", "one-deployment"]
    assert await listed(kind="Deployment", kind_name="other") == ["all-deployments"]
    assert await listed(kind="Deployment", api_version="apps/v2") == []
    everywhere = await api(
        "Policy.ListInstancePropagationPolicies",
        ListInstancePropagationPoliciesResponse,
        instance="demo",
        page_size=-1,
        phase="whatever",
    )
    assert {"jobs", "hello"} <= {item.metadata.name for item in everywhere.items if item.metadata}


async def test_policies_of_the_whole_instance_have_no_namespace(api: Api) -> None:
    manifest = json.loads(policy("ClusterPropagationPolicy", "everywhere", SPEC))
    manifest["metadata"]["namespace"] = "x"
    with refused(Code.INVALID_ARGUMENT, "no namespace"):
        await api(
            "Policy.CreateClusterPropagationPolicy",
            CreateClusterPropagationPolicyResponse,
            instance="demo",
            data=json.dumps(manifest),
        )
