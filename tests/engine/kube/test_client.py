"""The client against a real kube-apiserver: every verb, every kind of refusal."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from support.waiting import PATIENCE, eventually

from kairship.kube import (
    Client,
    Connection,
    Impersonation,
    Kubeconfig,
    Object,
    Resource,
    UnknownKind,
    WatchEvent,
    errors,
    kinds,
)

SELF_REVIEWS = Resource.of("authentication.k8s.io/v1", "selfsubjectreviews", kind="SelfSubjectReview", namespaced=False)


class Kube(Protocol):
    """The value of the session's `kube` fixture: an API server and its administrator."""

    @property
    def connection(self) -> Connection: ...


@pytest.fixture
async def client(kube: Kube) -> AsyncIterator[Client]:
    async with Client(kube.connection) as client:
        yield client


def configmap(name: str, **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


def deployment(name: str, *containers: str) -> Object:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": container, "image": "example/a:1"} for container in containers]},
            },
        },
    }


def crd(group: str) -> Object:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


@pytest.fixture
async def widgets(client: Client) -> AsyncIterator[Resource]:
    """A kind that the server did not have a moment ago."""
    group = f"{secrets.token_hex(4)}.kairship.test"
    created = await client.apply_object(crd(group), field_manager="test")
    name = created["metadata"]["name"]
    resource = Resource.of(f"{group}/v1", "widgets", kind="Widget", namespaced=False)

    async def served() -> bool:  # requests and discovery hear one after the other that the CRD is established
        await client.list(resource, limit=1)
        reply = await client.request("GET", f"/apis/{group}/v1")
        return reply.status == 200 and b"widgets/status" in reply.body

    await eventually(served, "the new kind being served")
    yield resource
    await client.delete(kinds.CRDS, name)


async def test_an_object_from_creation_to_deletion(client: Client, namespace: str) -> None:
    created = await client.create(kinds.CONFIGMAPS, configmap("a", x="1"), namespace=namespace)
    assert await client.get(kinds.CONFIGMAPS, "a", namespace=namespace) == created
    changed = await client.replace(kinds.CONFIGMAPS, {**created, "data": {"x": "2"}})
    assert changed["data"] == {"x": "2"}
    with pytest.raises(errors.Conflict, match="read it again"):
        await client.replace(kinds.CONFIGMAPS, {**created, "data": {"x": "3"}})
    await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await client.get(kinds.CONFIGMAPS, "a", namespace=namespace)
    with pytest.raises(errors.NotFound):
        await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
    await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace, missing_ok=True)


async def test_refusals_have_their_type_and_causes(client: Client, namespace: str) -> None:
    await client.create(kinds.CONFIGMAPS, configmap("a"), namespace=namespace)
    with pytest.raises(errors.AlreadyExists):
        await client.create(kinds.CONFIGMAPS, configmap("a"), namespace=namespace)
    with pytest.raises(errors.Invalid) as invalid:
        await client.create(kinds.DEPLOYMENTS, deployment("Not_A_Name"), namespace=namespace)
    fields = {cause.field for cause in invalid.value.causes}
    assert {"metadata.name", "spec.template.spec.containers"} <= fields
    with pytest.raises(errors.BadRequest):
        await client.create(kinds.CONFIGMAPS, b'{"data": "no mapping"}', namespace=namespace)
    with pytest.raises(errors.MethodNotAllowed):
        await client.list(kinds.SUBJECT_ACCESS_REVIEWS)


async def test_two_field_managers_and_one_field(client: Client, namespace: str) -> None:
    async def apply(manager: str, *, force: bool = True, **data: str) -> dict[str, Any]:
        obj = configmap("a", **data)
        applied = await client.apply(kinds.CONFIGMAPS, obj, namespace=namespace, field_manager=manager, force=force)
        data_now: dict[str, Any] = applied.get("data", {})
        return data_now

    assert await apply("one", x="1", y="1") == {"x": "1", "y": "1"}
    with pytest.raises(errors.Conflict, match='conflict with "one"') as conflict:
        await apply("two", force=False, x="2")
    assert [(cause.reason, cause.field) for cause in conflict.value.causes] == [("FieldManagerConflict", ".data.x")]
    assert await apply("two", x="2") == {"x": "2", "y": "1"}
    # A field that a manager no longer applies, and that no other manager owns, is removed.
    assert await apply("one") == {"x": "2"}


async def test_a_merge_patch_replaces_a_list_as_a_whole(client: Client, namespace: str) -> None:
    await client.create(kinds.DEPLOYMENTS, deployment("d", "one"), namespace=namespace)
    two = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "example/b:1"}]}}}}
    changed = await client.patch(kinds.DEPLOYMENTS, "d", two, namespace=namespace)
    assert [container["name"] for container in changed["spec"]["template"]["spec"]["containers"]] == ["two"]


async def test_pages_show_one_revision(client: Client, namespace: str) -> None:
    names = [f"a{number:02}" for number in range(25)]
    for name in names:
        await client.typed(msgspec.Raw).create(kinds.CONFIGMAPS, configmap(name), namespace=namespace)
    seen: list[str] = []
    sizes: list[int] = []
    revisions: set[str] = set()
    pages = client.pages(
        kinds.CONFIGMAPS, namespace=namespace, field_selector="metadata.name!=kube-root-ca.crt", limit=10
    )
    async with aclosing(pages):
        async for page in pages:
            sizes.append(len(page.items))
            revisions.add(page.resource_version)
            seen += [item["metadata"]["name"] for item in page.items]
            # Changes during the reading are not part of the list.
            await client.delete(kinds.CONFIGMAPS, names[len(revisions) - 1], namespace=namespace, missing_ok=True)
            await client.delete(kinds.CONFIGMAPS, names[-1], namespace=namespace, missing_ok=True)
    assert (sizes, seen, len(revisions)) == ([10, 10, 5], names, 1)


async def test_a_list_may_be_typed_or_raw(client: Client, namespace: str) -> None:
    class Data(msgspec.Struct):
        data: dict[str, str] = {}

    await client.create(
        kinds.CONFIGMAPS,
        {**configmap("a", x="1"), "metadata": {"name": "a", "labels": {"l": "1"}}},
        namespace=namespace,
    )
    typed = await client.typed(Data).list(kinds.CONFIGMAPS, namespace=namespace, label_selector="l=1")
    assert typed.items == [Data({"x": "1"})]
    raw = await client.typed(msgspec.Raw).list(kinds.CONFIGMAPS, namespace=namespace, label_selector="l=1")
    assert msgspec.json.decode(raw.items[0], type=Data) == Data({"x": "1"})
    assert int(raw.resource_version) >= int(typed.resource_version)  # others write to the same server meanwhile


async def test_a_watch_tells_every_change_in_order(client: Client, namespace: str) -> None:
    start = (await client.list(kinds.CONFIGMAPS, namespace=namespace)).resource_version
    created = await client.create(kinds.CONFIGMAPS, configmap("a", x="1"), namespace=namespace)
    changed = await client.patch(kinds.CONFIGMAPS, "a", {"data": {"x": "2"}}, namespace=namespace)
    await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace)
    watch = client.watch(
        kinds.CONFIGMAPS,
        namespace=namespace,
        resource_version=start,
        field_selector="metadata.name=a",
        server_timeout=12,  # the server sends the bookmark two seconds before, and the rest must be done by then
    )
    events: list[WatchEvent[Object]] = []
    async for event in watch:  # to the end that the server makes after its timeout
        events.append(event)
        if event.type == "DELETED":
            # No event of this watch, but a bookmark will show that the watch has reached this revision.
            unseen = await client.create(kinds.CONFIGMAPS, configmap("b"), namespace=namespace)
    assert [event.type for event in events[:3]] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.resource_version for event in events[:2]] == [
        created["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"],
    ]
    assert events[1].object["data"] == {"x": "2"}
    # Before its end a watch sends bookmarks with the revision that it has reached.
    assert {event.type for event in events[3:]} == {"BOOKMARK"}
    assert int(events[-1].resource_version) >= int(unseen["metadata"]["resourceVersion"])


async def test_a_watch_without_a_revision_begins_with_what_exists(client: Client, namespace: str) -> None:
    await client.create(kinds.SECRETS, {"metadata": {"name": "a"}}, namespace=namespace)
    async with aclosing(client.typed(msgspec.Raw).watch(kinds.SECRETS, namespace=namespace)) as events:
        async with asyncio.timeout(PATIENCE):
            event = await anext(events)
    assert event.type == "ADDED"
    assert b'"name":"a"' in bytes(event.object)


async def test_a_revision_older_than_the_servers_memory_is_expired(client: Client, widgets: Resource) -> None:
    """The cache of a kind that has just been installed begins after revision 2."""

    async def first_event() -> WatchEvent[Object]:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await anext(client.watch(widgets, resource_version="2", server_timeout=10))
                except errors.TooManyRequests as busy:  # the cache of a new kind is still being filled
                    await asyncio.sleep(busy.retry_after or 0.1)

    with pytest.raises(errors.Expired, match="list again"):
        await first_event()


async def test_deletion_of_that_one_and_no_other(client: Client, namespace: str) -> None:
    created = await client.create(kinds.CONFIGMAPS, configmap("a"), namespace=namespace)
    with pytest.raises(errors.Conflict):
        await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace, uid="another")
    await client.delete(kinds.CONFIGMAPS, "a", namespace=namespace, uid=created["metadata"]["uid"])


async def test_the_status_is_apart_from_the_object(client: Client, widgets: Resource) -> None:
    await client.create(widgets, {"metadata": {"name": "w"}, "spec": {"replicas": 1}, "status": {"replicas": 5}})
    both = {"status": {"replicas": 2}, "spec": {"replicas": 9}}
    await client.patch(widgets, "w", both, subresource="status")
    now = await client.get(widgets, "w")
    assert (now["spec"], now["status"]) == ({"replicas": 1}, {"replicas": 2})
    applied = {"metadata": {"name": "w"}, "status": {"phase": "Ready"}}
    await client.apply(widgets, applied, subresource="status", field_manager="test")
    now = await client.get(widgets, "w")
    assert (now["spec"], now["status"]) == ({"replicas": 1}, {"replicas": 2, "phase": "Ready"})


async def test_acting_as_somebody_else(client: Client, namespace: str) -> None:
    ann = client.impersonating(
        Impersonation(user="kairship:user:ann", groups=("kairship:group:red",), uid="7", extra={"acme.io/Team": ("x",)})
    )
    review = await ann.create(SELF_REVIEWS, {})
    assert review["status"]["userInfo"] == {
        "username": "kairship:user:ann",
        "uid": "7",
        "groups": ["kairship:group:red", "system:authenticated"],
        "extra": {"acme.io/team": ["x"]},
    }
    with pytest.raises(errors.Forbidden, match='User "kairship:user:ann" cannot list'):
        await ann.list(kinds.SECRETS, namespace=namespace)
    await client.list(kinds.SECRETS, namespace=namespace)


async def test_a_service_account_with_its_token(client: Client, kube: Kube, namespace: str, tmp_path: Path) -> None:
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "sa"}}, namespace=namespace)
    request = {"spec": {"expirationSeconds": 600}}
    issued = await client.create(kinds.SERVICE_ACCOUNTS, request, namespace=namespace, name="sa", subresource="token")
    token: str = issued["status"]["token"]
    file = tmp_path / "token"
    file.write_text(token)

    def with_identity(*, token: str | None = None, token_file: str | None = None) -> Client:
        connection = Connection(
            server=kube.connection.server,
            ca=kube.connection.ca,
            tls_server_name=kube.connection.tls_server_name,
            token=token,
            token_file=token_file,
        )
        return Client(connection)

    for account in (with_identity(token=token), with_identity(token_file=str(file))):
        async with account:
            review = await account.create(SELF_REVIEWS, {})
            assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:sa"
            with pytest.raises(errors.Forbidden):
                await account.get(kinds.SERVICE_ACCOUNTS, "sa", namespace=namespace)
    async with with_identity(token=token[:-8] + "AAAAAAAA") as stranger:
        with pytest.raises(errors.Unauthorized, match="renew it"):
            await stranger.list(kinds.NODES)


async def test_a_kubeconfig_of_ours_opens_the_server(kube: Kube, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(kube.connection.to_kubeconfig(name="plane"))
    assert [context.name for context in Kubeconfig.load(file).contexts] == ["plane"]
    async with Client(Connection.from_kubeconfig(file)) as client:
        assert (await client.version()).git_version.startswith("v1.")


async def test_an_object_of_a_kind_that_is_new(client: Client, widgets: Resource) -> None:
    widget = {"apiVersion": widgets.api_version, "kind": "Widget", "metadata": {"name": "a"}, "spec": {"replicas": 4}}
    await client.apply_object(widget, field_manager="test")
    assert (await client.get(widgets, "a"))["spec"] == {"replicas": 4}
    with pytest.raises(UnknownKind):
        await client.apply_object({"apiVersion": widgets.api_version, "kind": "Gadget"}, field_manager="test")


async def test_what_the_server_serves(client: Client) -> None:
    served = {one.resource: one for one in (await client.discovery.catalogue()).resources}
    assert {"scale", "status"} <= served[kinds.DEPLOYMENTS].subresources
    assert {"list", "watch"} <= served[kinds.SECRETS].verbs
    named = [value for value in vars(kinds).values() if isinstance(value, Resource)]
    for resource in named:
        # A mistyped plural or scope would show nowhere else.
        assert resource in served or "karmada.io" in resource.group, resource


async def test_bytes_pass_unchanged(client: Client, namespace: str) -> None:
    """A reply in protobuf, which only callers of the raw form request."""
    await client.create(
        kinds.SECRETS, {"metadata": {"name": "a"}, "data": {"k": base64.b64encode(b"v").decode()}}, namespace=namespace
    )
    reply = await client.request(
        "GET",
        kinds.SECRETS.path(namespace=namespace, name="a"),
        headers={"Accept": "application/vnd.kubernetes.protobuf"},
    )
    assert (reply.status, reply.body[:4]) == (200, b"k8s\x00")
    assert (await client.request("GET", "/no/such/path")).status == 404
