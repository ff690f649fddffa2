"""Reading manifests, and replacing an object by one."""

import json

import pytest

from kairship.apiserver.services.manifests import read_fields, read_manifest
from kairship.apiserver.services.replacement import replacement
from kairship.kube import kinds
from kairship.rpc.errors import InvalidArgument

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}


async def test_a_manifest_gets_the_name_and_namespace_of_the_request() -> None:
    nameless = json.dumps({"apiVersion": "apps/v1", "kind": "Deployment"})
    found = await read_manifest(nameless, kinds.DEPLOYMENTS, name="web", namespace="shop")
    assert found["metadata"] == {"name": "web", "namespace": "shop"}
    found = await read_manifest("# a comment\n---\n" + json.dumps(WEB), kinds.DEPLOYMENTS, namespace="shop")
    assert found["metadata"] == {"name": "web", "namespace": "shop"}


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"kind": "Job", "apiVersion": "v1"}, ["data.apiVersion", "data.kind"]),
        ({"metadata": {"name": "db"}}, ["data.metadata.name"]),
        ({"metadata": {"name": "web", "namespace": "x"}}, ["data.metadata.namespace"]),
        ({"metadata": "x"}, ["data.metadata"]),
        ({"kind": None}, ["data.kind"]),
    ],
)
async def test_all_contradictions_are_told_at_once(change: dict[str, object], fields: list[str]) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await read_manifest(json.dumps(WEB | change), kinds.DEPLOYMENTS, name="web", namespace="shop")
    assert [field for field, _ in refused.value.violations] == fields


@pytest.mark.parametrize("text", ["", "---", "[]", "1", "a: b\n---\nc: d", "{", "a: &x 1\nb: *x", "[" * 101, "\x00"])
async def test_text_that_is_not_one_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^data: "):
        await read_fields(text, kinds.DEPLOYMENTS, name="web", namespace="shop")


def test_a_replacement_keeps_what_the_caller_did_not_write() -> None:
    current = {
        "metadata": {
            "name": "web",
            "resourceVersion": "7",
            "generation": 3,
            "labels": {"a": "b", "propagationpolicy.karmada.io/permanent-id": "p"},
            "annotations": {"karmada.io/x": "y", "notkarmada.io/x": "y"},
            "finalizers": ["f"],
            "managedFields": [{}],
        }
    }
    made = replacement({"metadata": {"name": "web", "labels": {"c": "d"}, "finalizers": []}, "spec": {}}, current)
    assert made["metadata"] == {
        "name": "web",
        "resourceVersion": "7",
        "labels": {"c": "d", "propagationpolicy.karmada.io/permanent-id": "p"},
        "annotations": {"karmada.io/x": "y"},
        "finalizers": ["f"],
    }


@pytest.mark.parametrize(
    ("sent", "version"),
    [
        ({}, "7"),
        ({"resourceVersion": "5"}, "5"),
        ({"resourceVersion": "5", "generation": 3}, "7"),  # only the status has changed since
        ({"resourceVersion": "5", "generation": 2}, "5"),
    ],
)
def test_the_version_that_is_replaced(sent: dict[str, object], version: str) -> None:
    current = {"metadata": {"name": "web", "resourceVersion": "7", "generation": 3}}
    assert replacement({"metadata": {"name": "web", **sent}}, current)["metadata"]["resourceVersion"] == version
