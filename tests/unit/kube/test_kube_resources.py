"""Paths of objects, kinds found by discovery, and what the writing verbs send."""

from typing import Any
from urllib.parse import unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_server import reply, scripted_server

from kairship.kube import (
    Client,
    Connection,
    NotFound,
    Resource,
    UnknownKind,
    kinds,
)

APPS = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get", "list"]},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True, "verbs": ["get"]},
    ]
}


def test_paths() -> None:
    assert kinds.NODES.path() == "/api/v1/nodes"
    assert kinds.PODS.path() == "/api/v1/pods"
    assert kinds.PODS.path(namespace="a") == "/api/v1/namespaces/a/pods"
    assert kinds.NODES.path(name="n", subresource="status") == "/api/v1/nodes/n/status"
    assert kinds.DEPLOYMENTS.path(namespace="a", name="b") == "/apis/apps/v1/namespaces/a/deployments/b"
    assert kinds.CLUSTERS.path(name="m", subresource="proxy/api/v1/pods").endswith("/clusters/m/proxy/api/v1/pods")
    assert kinds.CLUSTER_ROLES.path(name="system:x").endswith("/clusterroles/system:x")


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        (kinds.NODES, {"namespace": "a"}),
        (kinds.PODS, {"name": "p"}),
        (kinds.NODES, {"subresource": "status"}),
        (kinds.NODES, {"name": ".."}),
        (kinds.NODES, {"name": ""}),
        (kinds.PODS, {"namespace": "."}),
        (kinds.PODS, {"namespace": "a", "name": "../secrets/s"}),
        (kinds.PODS, {"namespace": "a", "name": "..%2fsecrets%2fs"}),
        (kinds.PODS, {"namespace": "a", "name": "..\\secrets\\s"}),
        (kinds.PODS, {"namespace": "a/secrets"}),
        (kinds.NODES, {"name": "n", "subresource": "proxy/../../secrets"}),
        (Resource.of("../v1", "pods", kind="Pod", namespaced=True), {}),
    ],
)
def test_a_path_that_would_mean_something_else_is_refused(resource: Resource, place: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"namespace|subresource|cannot be part of a path"):
        resource.path(**place)


@given(st.text(min_size=1))
def test_no_name_reaches_another_path(name: str) -> None:
    try:
        path = kinds.NODES.path(name=name)
    except ValueError:
        assert name in {".", ".."} or set(name) & set("/%\\")
    else:
        assert path.startswith("/api/v1/nodes/")
        assert unquote(path).count("/") == 4
        assert not set(path) & set("?#% \\") - {"%"}


def test_api_versions() -> None:
    assert (kinds.PODS.api_version, kinds.DEPLOYMENTS.api_version) == ("v1", "apps/v1")
    assert Resource.of("apps/v1", "deployments", kind="Deployment", namespaced=True) == kinds.DEPLOYMENTS


async def test_a_kind_is_asked_for_once_and_again_when_unknown() -> None:
    later = {"resources": [*APPS["resources"], {"name": "widgets", "kind": "Widget", "namespaced": False}]}
    missing = reply(b"404 page not found", status=404)
    async with (
        scripted_server(reply(APPS), reply(APPS), reply(later), missing) as server,
        Client(Connection(server=server.url)) as client,
    ):
        assert await client.discovery.find("apps/v1", "Deployment") == kinds.DEPLOYMENTS
        assert await client.discovery.find("apps/v1", "Deployment") == kinds.DEPLOYMENTS
        with pytest.raises(UnknownKind, match="Widget of apps/v1"):
            await client.discovery.find("apps/v1", "Widget")
        assert (await client.discovery.find("apps/v1", "Widget")).plural == "widgets"
        with pytest.raises(UnknownKind):
            await client.discovery.find("absent.io/v1", "Absent")
        assert [request.target for request in server.requests] == ["/apis/apps/v1"] * 3 + ["/apis/absent.io/v1"]


async def test_the_catalogue_tells_what_did_not_answer() -> None:
    groups = {"groups": [{"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}]}
    core = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"]}]}
    async with (
        scripted_server(reply(groups), reply(core), reply(b"down", status=503)) as server,
        Client(Connection(server=server.url), max_connections=1) as client,
    ):
        catalogue = await client.discovery.catalogue()
    assert [served.resource for served in catalogue.resources] == [kinds.PODS]
    assert list(catalogue.failed) == ["apps/v1"]


async def test_the_catalogue_knows_verbs_and_subresources() -> None:
    groups = {"groups": [{"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}}]}
    async with (
        scripted_server(reply(groups), reply({"resources": None}), reply(APPS)) as server,
        Client(Connection(server=server.url), max_connections=1) as client,
    ):
        (served,) = (await client.discovery.catalogue()).resources
    assert (served.resource, served.verbs, served.subresources) == (
        kinds.DEPLOYMENTS,
        frozenset({"get", "list"}),
        frozenset({"scale"}),
    )


async def test_objects_of_any_kind_are_applied_where_they_belong() -> None:
    core: dict[str, Any] = {
        "resources": [
            {"name": "namespaces", "kind": "Namespace"},
            {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        ]
    }
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
    ]
    async with (
        scripted_server(reply(core), *[reply({})] * 3) as server,
        Client(Connection(server=server.url)) as client,
    ):
        for obj in objects:
            await client.apply_object(obj, field_manager="me", namespace="home")
        query = "?fieldManager=me&force=true"
        assert [request.target for request in server.requests[1:]] == [
            f"/api/v1/namespaces/n{query}",
            f"/api/v1/namespaces/n/configmaps/a{query}",
            f"/api/v1/namespaces/home/configmaps/b{query}",
        ]
        assert server.requests[1].headers["content-type"] == ["application/apply-patch+yaml"]


async def test_a_mapping_may_leave_out_what_the_resource_says() -> None:
    class Named(msgspec.Struct):
        metadata: dict[str, str]

    async with (
        scripted_server(*[reply({}, status=201)] * 4) as server,
        Client(Connection(server=server.url)) as client,
    ):
        await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="n")
        await client.create(kinds.SERVICE_ACCOUNTS, {"spec": {}}, namespace="n", name="sa", subresource="token")
        await client.create(kinds.CONFIGMAPS, b'{"metadata":{"namespace":"own"}}')
        await client.replace(kinds.NODES, Named({"name": "n"}))
        assert [(request.target, msgspec.json.decode(request.body)) for request in server.requests] == [
            (
                "/api/v1/namespaces/n/configmaps",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
            ),
            ("/api/v1/namespaces/n/serviceaccounts/sa/token", {"spec": {}}),
            ("/api/v1/namespaces/own/configmaps", {"metadata": {"namespace": "own"}}),
            ("/api/v1/nodes/n", {"metadata": {"name": "n"}}),
        ]


async def test_an_object_without_name_or_namespace_is_refused_before_it_is_sent() -> None:
    async with scripted_server() as server, Client(Connection(server=server.url)) as client:
        with pytest.raises(ValueError, match="needs a namespace"):
            await client.create(kinds.CONFIGMAPS, {"metadata": {"name": "a"}})
        with pytest.raises(ValueError, match="has no name"):
            await client.apply(kinds.NODES, {}, field_manager="me")
        with pytest.raises(ValueError, match="not a Kubernetes object"):
            await client.replace(kinds.NODES, b"[]")
        assert server.connections == 0


async def test_patches_say_what_they_are() -> None:
    async with scripted_server(*[reply({})] * 2) as server, Client(Connection(server=server.url)) as client:
        await client.patch(kinds.NODES, "n", {"metadata": {}})
        await client.patch(kinds.NODES, "n", {}, field_manager="me")
        assert [request.headers["content-type"] for request in server.requests] == [
            ["application/merge-patch+json"],
            ["application/merge-patch+json"],
        ]
        assert server.requests[1].target == "/api/v1/nodes/n?fieldManager=me"


async def test_deletion_carries_its_conditions_and_may_find_nothing() -> None:
    missing = reply({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
    async with (
        scripted_server(reply({}), reply({}), missing, missing) as server,
        Client(Connection(server=server.url)) as client,
    ):
        await client.delete(kinds.NODES, "n")
        await client.delete(kinds.NODES, "n", uid="u")
        await client.delete(kinds.NODES, "n", missing_ok=True)
        with pytest.raises(NotFound):
            await client.delete(kinds.NODES, "n")
        assert [msgspec.json.decode(request.body) for request in server.requests[:2]] == [
            {},
            {"preconditions": {"uid": "u"}},
        ]


async def test_pages_follow_the_continue_token() -> None:
    def page(name: str, token: str) -> object:
        return {"metadata": {"resourceVersion": "9", "continue": token}, "items": [{"metadata": {"name": name}}]}

    async with (
        scripted_server(reply(page("a", "t1")), reply(page("b", "t2")), reply(page("c", ""))) as server,
        Client(Connection(server=server.url)) as client,
    ):
        seen = [page async for page in client.pages(kinds.NODES, limit=1, field_selector="x=y")]
        assert [item["metadata"]["name"] for page in seen for item in page.items] == ["a", "b", "c"]
        assert [request.target.partition("?")[2] for request in server.requests] == [
            "fieldSelector=x%3Dy&limit=1",
            "fieldSelector=x%3Dy&limit=1&continue=t1",
            "fieldSelector=x%3Dy&limit=1&continue=t2",
        ]
