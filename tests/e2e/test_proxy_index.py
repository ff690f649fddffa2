"""Whatever the proxy answers from the index is what the instance would have answered, for every caller."""

import asyncio
import difflib
import gzip
import itertools
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import informer as informers
from support.entrance_process import entrance_of
from support.informer import assert_nothing_twice
from support.kubectl import INSTANCE, proxied
from support.manifests import deployment
from support.not_yet import NotYet
from support.people import People, Person, register
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, Impersonation, RawResponse, kinds
from kairship.resources import SubjectKind, is_reserved
from kairship.resources.access_binding import name_inside

SOURCE = "X-Kairship-Source"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io,application/json"
MEMBER = "frankfurt"
IN_MEMBER = f"/apis/cluster.karmada.io/v1alpha1/clusters/{MEMBER}/proxy"
_AGE = re.compile(r"(\d+[smhdy])+|<invalid>")
ROUNDS = 15


@pytest.fixture
async def through(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    async with Client(await proxied(plane)) as client:
        yield client


@pytest.fixture
async def direct(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    async with Client(await plane.instance_connection()) as client:
        yield client


@asynccontextmanager
async def namespace_in(client: Client) -> AsyncIterator[str]:
    name = f"indexed-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(kinds.NAMESPACES, name)


@pytest.fixture
async def home(direct: Client) -> AsyncIterator[str]:
    async with namespace_in(direct) as name:
        yield name


async def ask(client: Client, path: str, **headers: str) -> RawResponse:
    return await client.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def from_index(client: Client, path: str, **headers: str) -> RawResponse:
    """Repeats the read until the index answers it.

    Other tests act as the same administrator: after a deletion of many objects, this caller's reads of the kind are
    forwarded to the instance for half a minute.
    """

    async def answered() -> RawResponse | None:
        reply = await ask(client, path, **headers)
        return reply if reply.headers.get(SOURCE) == "index" else None

    reply: RawResponse = await eventually(answered, f"an answer of the index to {path}")
    assert float(reply.headers["Kairship-Data-Age"]) < 15
    return reply


async def assert_same(through: Client, direct: Client, path: str, original: str | None = None, **headers: str) -> Any:
    """Repeats both reads until they agree: the index may lag a moment, and other tests write meanwhile."""
    mine: Any = None

    async def equal() -> NotYet | bool:
        nonlocal mine
        mine = _comparable(await from_index(through, path, **headers))
        theirs = _comparable(await ask(direct, original or path, **headers))
        return bool(mine == theirs) or NotYet(_difference(mine, theirs))

    await eventually(equal, f"the same answer to {path}")
    return mine


def _difference(mine: Any, theirs: Any) -> str:
    ours, original = (msgspec.json.format(msgspec.json.encode(each)).decode().splitlines() for each in (mine, theirs))
    return "\n".join(difflib.unified_diff(ours, original, "from the index", "from the cluster", n=1, lineterm=""))


def _comparable(reply: RawResponse) -> Any:
    """Leaves out what differs from one moment to the next: ages and resource versions of lists."""
    if "json" not in reply.headers.get("Content-Type", ""):
        return reply.status, reply.body.decode()  # of a server that is too busy, or behind which another is not there
    body = msgspec.json.decode(reply.body)
    if "rows" in body or "items" in body:
        body["metadata"].pop("resourceVersion", None)
        if not body["metadata"].get("continue"):
            body["metadata"].pop("continue", None)  # custom resources have it, empty
    if "items" in body:
        body["items"] = body["items"] or []  # API servers write an empty list of metadata as null
    for row in body.get("rows") or ():
        row["cells"] = [_AGE.sub("AGE", cell) if isinstance(cell, str) else cell for cell in row["cells"]]
    return reply.status, body


def one_of_each_kind(home: str) -> list[tuple[str, dict[str, Any]]]:
    """One object of each kind whose table the proxy prints, with values for all of its columns."""
    selector = {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["2", "1"]}]}
    pod: dict[str, Any] = {
        "metadata": {"labels": {"app": "x", "b": "1"}},
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "containers": [{"name": "a", "image": "nginx:1.29"}, {"name": "b", "image": "redis"}],
        },
    }
    once = {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    job = {"spec": {"template": once}}
    rule = {"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _backend()}]}}
    inside = f"namespaces/{home}"
    return [
        (f"/apis/apps/v1/{inside}/deployments", {"spec": {"replicas": 3, "selector": selector, "template": pod}}),
        (f"/apis/apps/v1/{inside}/replicasets", {"spec": {"replicas": 2, "selector": selector, "template": pod}}),
        (f"/apis/apps/v1/{inside}/statefulsets", {"spec": {"serviceName": "x", "selector": selector, "template": pod}}),
        (f"/apis/apps/v1/{inside}/daemonsets", {"spec": {"selector": selector, "template": pod}}),
        (f"/apis/batch/v1/{inside}/jobs", {"spec": {"parallelism": 2, "template": once}}),
        (f"/apis/batch/v1/{inside}/cronjobs", {"spec": {"schedule": "@daily", "jobTemplate": job}}),
        (f"/api/v1/{inside}/services", {"spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        (f"/api/v1/{inside}/configmaps", {"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}}),
        (f"/api/v1/{inside}/serviceaccounts", {}),
        (f"/api/v1/{inside}/resourcequotas", {"spec": {"hard": {"pods": "4", "limits.cpu": "2", "requests.cpu": "1"}}}),
        (f"/api/v1/{inside}/limitranges", {"spec": {"limits": []}}),
        (f"/api/v1/{inside}/persistentvolumeclaims", _claim()),
        (f"/apis/policy/v1/{inside}/poddisruptionbudgets", {"spec": {"maxUnavailable": "20%", "selector": selector}}),
        (f"/apis/networking.k8s.io/v1/{inside}/networkpolicies", {"spec": {"podSelector": selector}}),
        (
            f"/apis/networking.k8s.io/v1/{inside}/ingresses",
            {"spec": {"tls": [{}], "rules": [{**rule, "host": f"{each}.example"} for each in "abcde"]}},
        ),
        (f"/apis/policy.karmada.io/v1alpha1/{inside}/propagationpolicies", _policy()),
    ]


def _backend() -> dict[str, Any]:
    return {"service": {"name": "x", "port": {"number": 80}}}


def _claim() -> dict[str, Any]:
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def _policy() -> dict[str, Any]:
    nothing = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "no-such-thing"}]
    placement = {"clusterAffinity": {"clusterNames": [MEMBER]}}
    spec = {"resourceSelectors": nothing, "placement": placement}
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "spec": spec}


async def test_tables_and_metadata_are_those_of_the_instance(through: Client, direct: Client, home: str) -> None:
    for path, manifest in one_of_each_kind(home):
        body = msgspec.json.encode({"metadata": {"name": "x", "labels": {"app": "x"}}, **manifest})
        reply = await direct.request("POST", path, body=body, headers={"Content-Type": "application/json"})
        assert reply.status == 201, reply.body
    for path, _ in one_of_each_kind(home):
        _, table = await assert_same(through, direct, path, Accept=TABLE)
        assert len(table["rows"]) >= 1, path
        await assert_same(through, direct, f"{path}?includeObject=Object&limit=500", Accept=TABLE)
        await assert_same(through, direct, f"{path}/x?includeObject=None", Accept=TABLE)
        await assert_same(through, direct, path, Accept=METADATA.format("List"))
        await assert_same(through, direct, f"{path}/x", Accept=METADATA.format(""))
        await assert_same(through, direct, path)
        await assert_same(through, direct, f"{path}/x")
    for path in (
        "/api/v1/namespaces",
        "/apis/cluster.karmada.io/v1alpha1/clusters",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/work.karmada.io/v1alpha2/resourcebindings",
    ):
        await assert_same(through, direct, path, Accept=TABLE)


async def test_a_member_is_read_from_the_index_too(plane: EmbeddedPlane, direct: Client) -> None:
    async with Client(await proxied(plane, member=MEMBER)) as through:
        for path in (
            "/api/v1/nodes",
            "/api/v1/pods",
            "/apis/apps/v1/replicasets",
            "/api/v1/services",
            "/api/v1/endpoints",
        ):
            for form in (TABLE, "application/json", METADATA.format("List")):
                await assert_same(through, direct, path, f"{IN_MEMBER}{path}", Accept=form)
        # The member does not serve Karmada's kinds, so the answer is its own.
        assert (await ask(through, "/apis/policy.karmada.io/v1alpha1/propagationpolicies")).status in {403, 404}


async def test_a_writer_reads_its_own_writes(plane: EmbeddedPlane, through: Client, home: str) -> None:
    """Each read uses a new connection, so that any worker may have to answer it.

    The rounds go on until the index has answered often enough: it is not asked while it lags, nor for half a minute
    after another test has, as the same administrator, written something of this kind whose revision is not known.
    """
    path = f"/api/v1/namespaces/{home}/configmaps"
    sources: list[str] = []
    deadline = time.monotonic() + PATIENCE
    for number in itertools.count():
        if number >= ROUNDS and (sources.count("index") > ROUNDS or time.monotonic() > deadline):
            break
        made = await through.create(
            kinds.CONFIGMAPS, {"metadata": {"name": f"c{number}"}, "data": {"a": "1"}}, namespace=home
        )
        changed = await through.patch(kinds.CONFIGMAPS, f"c{number}", {"data": {"a": "2"}}, namespace=home)
        async with Client(await proxied(plane)) as other:
            one = await ask(other, f"{path}/c{number}")
            assert (
                msgspec.json.decode(one.body)["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]
            )
            await through.delete(kinds.CONFIGMAPS, f"c{number}", namespace=home, uid=made["metadata"]["uid"])
            many = await ask(other, path)
            assert f"c{number}" not in {item["metadata"]["name"] for item in msgspec.json.decode(many.body)["items"]}
            assert (await ask(other, f"{path}/c{number}")).status == 404
            sources += [one.headers[SOURCE], many.headers[SOURCE]]
    assert sources.count("index") > ROUNDS, sources


async def test_requests_that_the_index_cannot_answer_are_forwarded(through: Client, direct: Client, home: str) -> None:
    path = f"/api/v1/namespaces/{home}/configmaps"
    await from_index(through, path)
    for query, headers in (
        ("", {"Cache_Control": "no-cache"}),
        ("", {"Accept": "application/vnd.kubernetes.protobuf"}),
        ("", {"Accept": "application/yaml"}),
        ("?limit=1&limit=2", {}),
        ("?fieldSelector=no.such.field%3Dx", {}),
        ("?resourceVersion=abc", {}),
        ("/kube-root-ca.crt?watch=true&timeoutSeconds=1", {}),
        ("?watch=true&timeoutSeconds=1", {}),
    ):
        mine, theirs = await ask(through, path + query, **headers), await ask(direct, path + query, **headers)
        assert (mine.status, mine.headers[SOURCE]) == (theirs.status, "instance"), query
    for each in ("/api/v1/secrets", f"/api/v1/namespaces/{home}/events", f"/api/v1/namespaces/{home}/nodes"):
        mine, theirs = await ask(through, each), await ask(direct, each)
        assert (mine.status, mine.headers[SOURCE]) == (theirs.status, "instance")


async def test_pages_and_large_lists(through: Client, direct: Client, home: str) -> None:
    path = f"/api/v1/namespaces/{home}/configmaps"
    for number in range(7):
        manifest = {"metadata": {"name": f"c{number}"}, "data": {"text": str(number) * 40_000}}
        await direct.create(kinds.CONFIGMAPS, manifest, namespace=home)
    _, whole = await assert_same(through, direct, path)
    found, token = [], ""
    while True:
        reply = await from_index(through, f"{path}?limit=3&continue={token}" if token else f"{path}?limit=3")
        page = msgspec.json.decode(reply.body)
        found += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert found == whole["items"]
    packed = await from_index(through, path, Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert msgspec.json.decode(gzip.decompress(packed.body))["items"] == whole["items"]
    forged = await ask(through, f"{path}?limit=3&continue=k1.AAAA")
    assert forged.status == 400


def paths(home: str, other: str) -> list[str]:
    core = ("/api/v1{}/configmaps", "/api/v1{}/pods", "/apis/apps/v1{}/deployments", "/api/v1{}/secrets")
    more = ("/apis/policy.karmada.io/v1alpha1{}/propagationpolicies", "/apis/rbac.authorization.k8s.io/v1{}/roles")
    scopes = (f"/namespaces/{home}", f"/namespaces/{other}", "/namespaces/no-such-namespace", "")
    found = [kind.format(scope) for kind, scope in itertools.product((*core, *more), scopes)]
    one = [f"/apis/apps/v1/namespaces/{each}/deployments/web" for each in (home, other, "no-such-namespace")]
    cluster_scoped = ["/api/v1/namespaces", "/api/v1/nodes", "/apis/cluster.karmada.io/v1alpha1/clusters"]
    named = [f"/api/v1/namespaces/{each}" for each in (home, other, "no-such-namespace")]
    return [*found, *one, *cluster_scoped, *named, f"/api/v1/namespaces/{home}/nodes"]


def inside(person: Person, *groups: str) -> Impersonation:
    names = tuple(name_inside(SubjectKind.GROUP, group) for group in groups)
    return Impersonation(user=name_inside(SubjectKind.USER, person.id), groups=names)


async def test_rights_are_those_of_the_instance(plane: EmbeddedPlane, direct: Client, home: str) -> None:
    """Every role and every scope: status and objects are those that the instance itself answers to that user.

    Nobody here may use reserved namespaces.
    """
    async with (
        entrance_of(plane) as admin,
        Client(await plane.global_connection()) as world,
        namespace_in(direct) as other,
    ):
        await register(world, INSTANCE)
        people = People(admin)
        for each in (home, other):
            await direct.create(kinds.DEPLOYMENTS, deployment("web"), namespace=each)
        try:
            viewer, narrow, member, handmade = [await people.person(name) for name in ("v", "n", "m", "h")]
            team = await people.group("team", member)
            await people.bind(viewer, "viewer", instance=INSTANCE)
            await people.bind(narrow, "viewer", instance=INSTANCE, namespace=home)
            await people.bind(team, "editor", instance=INSTANCE, namespace=home)
            await people.bind(handmade, "viewer", instance=INSTANCE, namespace=other)
            await _grant_by_hand(direct, handmade, home)
            shown = {"index": 0, "instance": 0}
            for person, identity in (
                (viewer, inside(viewer)),
                (narrow, inside(narrow)),
                (member, inside(member, team)),
                (handmade, inside(handmade)),
            ):
                token = person.client.headers["Authorization"].removeprefix("Bearer ")
                async with Client(await proxied(plane, token=token)) as through:
                    await _arrived(direct.impersonating(identity), home, other, person is handmade)
                    for path in paths(home, other):
                        source = await _same_answer(through, direct.impersonating(identity), path)
                        shown[source] += 1
            assert shown["index"] > 20
            assert shown["instance"] > 20
        finally:
            await people.clear_away()


async def _grant_by_hand(direct: Client, person: Person, home: str) -> None:
    name = f"by-hand-{person.name}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": inside(person).user}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    await direct.create(kinds.ROLES, {"metadata": {"name": name}, "rules": rules}, namespace=home)
    manifest = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    await direct.create(kinds.ROLE_BINDINGS, manifest, namespace=home)


async def _arrived(client: Client, home: str, other: str, is_handmade: bool) -> None:
    """Waits until the RBAC of the binding is in the instance."""
    namespace = other if is_handmade else home

    async def allowed() -> bool:
        return (await ask(client, f"/apis/apps/v1/namespaces/{namespace}/deployments")).status == 200

    await eventually(allowed, "the right to list Deployments")


async def _same_answer(through: Client, original: Client, path: str) -> str:
    async def source() -> NotYet | str:
        mine, theirs = await ask(through, path), await ask(original, path)
        # Some requests the plane refuses to every caller, whatever RBAC inside grants; never the other way round.
        closed = mine.status == 403 and SOURCE not in mine.headers
        # RBAC cannot leave reserved namespaces out of all namespaces; the plane does.
        expected = _answer(theirs, left_out=is_reserved)
        if closed or _answer(mine) == expected:
            return str(mine.headers.get(SOURCE, "instance"))
        return NotYet((_answer(mine), expected))

    return str(await eventually(source, f"the same answer to {path}"))


def _answer(reply: RawResponse, *, left_out: Callable[[str], bool] = lambda _: False) -> Any:
    if reply.status != 200:
        return reply.status
    body = msgspec.json.decode(reply.body)
    items = body.get("items", [body])
    found = ((one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in items)
    return sorted(each for each in found if not left_out(each[0]))


async def test_a_watch_begins_in_the_index(through: Client, home: str) -> None:
    await through.create(kinds.CONFIGMAPS, {"metadata": {"name": "first"}}, namespace=home)
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    path = f"/api/v1/namespaces/{home}/configmaps?watch=true&{query}"

    async def begun() -> bytes | None:
        source, content = await _beginning(through, path, "application/json")
        return content if source == "index" else None

    beginning = await eventually(begun, "a watch that begins in the index")
    events = [msgspec.json.decode(line) for line in beginning.splitlines()]
    named = [event["object"]["metadata"].get("name") for event in events if event["type"] == "ADDED"]
    assert "first" in named
    assert len(named) == len(set(named))
    end = next(event["object"]["metadata"] for event in events if event["type"] == "BOOKMARK")
    assert end["annotations"] == {"k8s.io/initial-events-end": "true"}
    source, _ = await _beginning(through, path, "application/vnd.kubernetes.protobuf;stream=watch,application/json")
    assert source == "instance"


async def _beginning(client: Client, path: str, accept: str) -> tuple[str, bytes]:
    """Reads a watch to the end of its initial events. Returns their source and their bytes."""
    received = b""
    async with client.stream("GET", path, headers={"Accept": accept}, timeout=60) as reply:
        assert reply.status == 200
        while b"initial-events-end" not in received or not received.endswith(b"\n"):
            received += await reply.read(timeout=60)
            if "json" not in reply.headers["Content-Type"]:
                break
    return reply.headers[SOURCE], received


async def test_an_informer_loses_nothing(plane: EmbeddedPlane, direct: Client, home: str, tmp_path: Path) -> None:
    """Informers that start in the middle of changes: no event is lost or repeated between the index and the watch."""
    program, connection = await asyncio.to_thread(informers.build), await proxied(plane)
    changing = asyncio.create_task(_change(direct, home))
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with informers.informer(program, connection, kinds.CONFIGMAPS, folder, namespace=home) as informer:
            await informer.synced()
            if number == 2:
                await changing
                await eventually(partial(_agrees, informer, direct, home), "the cache of the informer being current")
            assert_nothing_twice(informer.events)


async def _change(client: Client, home: str) -> None:
    for number in range(150):
        name = f"c{number % 30}"
        if number % 7 == 6:
            await client.delete(kinds.CONFIGMAPS, name, namespace=home, missing_ok=True)
        else:
            manifest = {"metadata": {"name": name}, "data": {"number": str(number)}}
            await client.apply(kinds.CONFIGMAPS, manifest, namespace=home, field_manager="test")


async def _agrees(informer: informers.Informer, client: Client, home: str) -> bool:
    page = await client.list(kinds.CONFIGMAPS, namespace=home)
    truth = {f"{home}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in page.items}
    return await informer.state() == truth
