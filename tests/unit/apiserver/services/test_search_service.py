"""The Search service over a real index: it finds and counts what is in sight, and nothing else."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.index_objects import body, fill

from kairship.apiserver.services.search import SearchService
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    MatchedPart,
    ObjectChange,
    SearchObjectsRequest,
    SearchObjectsResponse,
    WatchObjectsRequest,
)
from kairship.index import Change, CurrentIndex, KubernetesReads, PageTokens, RecordBuilder, Splicer
from kairship.index.history import SqliteHistory
from kairship.index.index_access import IndexAccess, IndexLocation, OpenIndex
from kairship.index.sqlite import SqliteIndex, SqliteWriteLog, SqliteWriter
from kairship.kube import Resource, kinds
from kairship.resources import Coverage
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import InvalidArgument, Unavailable
from kairship.rpc.resource_cache import SeenCluster, SeenMembership
from kairship.rpc.sight import EVERYTHING, Sight
from kairship.wire import methods

METHOD = next(method for method in methods().values() if method.name == "SearchObjects")


class All:
    """Stands in for the cache of a kind."""

    def __init__(self, shape: type[Any], *objects: dict[str, Any]) -> None:
        self.reflector = self
        self.store = [msgspec.convert(each, shape) for each in objects]

    async def all(self, _: Call) -> list[Any]:
        return self.store


class Own:
    clusters = All(
        SeenCluster,
        *(
            {
                "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
                "spec": {"virtual": name.startswith("k-"), "credentials": {"name": "x"}},
            }
            for name in ("k-prod", "frankfurt", "lonely", "k-new")
        ),
    )
    memberships = All(
        SeenMembership,
        {
            "metadata": {"name": "frankfurt", "uid": "m", "resourceVersion": "1"},
            "spec": {"instance": "prod"},
        },
    )


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[IndexAccess]:
    for cluster in ("k-prod", "frankfurt", "lonely"):
        writer = await SqliteWriter.open(tmp_path, f"uid-{cluster}")
        spec = {"containers": [{"image": "docker.io/library/nginx:1.29"}]}
        pods = [body(f"web-{n}", namespace=ns, labels={"app": "shop"}, spec=spec) for n, ns in enumerate(("a", "b"))]
        await fill(writer, kinds.PODS, *pods, body("web-x", namespace="karmada-system"))
        await fill(writer, kinds.NODES, body("web-node", namespace=""))
        await writer.close()
    access = IndexAccess(IndexLocation(tmp_path))
    stored, log = SqliteIndex(tmp_path), SqliteWriteLog(tmp_path)
    current, tokens = CurrentIndex(stored, log), PageTokens(b"k" * 32)
    async with Splicer(stored) as splicer:
        access.opened = OpenIndex(current, tokens, SqliteHistory(tmp_path), KubernetesReads(current, tokens), splicer)
        yield access
    stored.close()
    log.close()


def call(sight: Sight = EVERYTHING, who: str = "alice") -> Call:
    deadline = time.monotonic() + 30
    found = Call(request_id="t", caller=Caller(id=who, name=who), method=METHOD, deadline=deadline, sight=sight)
    found.coverage_of = lambda _: Coverage(everywhere=True)
    return found


async def search(index: IndexAccess, query: str, at: Call | None = None, **asked: Any) -> SearchObjectsResponse:
    service = SearchService(Own(), index)  # type: ignore[arg-type]
    return await service.search_objects(SearchObjectsRequest(query=query, **asked), at or call())


def places(reply: SearchObjectsResponse) -> list[str]:
    return [f"{hit.instance}:{hit.cluster}:{hit.namespace}/{hit.name}" for hit in reply.items]


async def test_a_caller_who_may_see_everything_finds_everything(index: IndexAccess) -> None:
    at = call()
    reply = await search(index, "web", at, count=True)
    assert reply.total == len(reply.items) == 12
    assert [(each.name, each.count) for each in reply.kinds] == [("pods", 9), ("nodes", 3)]
    assert [(each.name, each.count) for each in reply.clusters] == [("frankfurt", 4), ("lonely", 4), ("prod", 4)]
    assert [(gap.cluster, gap.reason) for gap in reply.gaps] == [("new", "nothing of it was collected yet")]
    assert at.data_age is not None
    assert "prod::a/web-0" in places(reply)
    assert "prod:frankfurt:a/web-0" in places(reply)
    assert ":lonely:a/web-0" in places(reply)


@pytest.mark.parametrize(
    ("sight", "expected"),
    [
        (Sight(), []),
        (Sight(coverage=Coverage(instances=frozenset(("other",)))), []),
        (
            Sight(coverage=Coverage(instances=frozenset(("prod",)))),
            ["a/web-0", "a/web-0", "b/web-1", "b/web-1", "/web-node", "/web-node"],
        ),
        (
            Sight(coverage=Coverage(instances=frozenset(("prod",))), reserved=Coverage(instances=frozenset(("prod",)))),
            ["a/web-0", "a/web-0", "b/web-1", "b/web-1", "/web-node", "/web-node", "karmada-system/web-x"] * 1
            + ["karmada-system/web-x"],
        ),
        (Sight(coverage=Coverage(namespaces={"prod": frozenset(("b",))})), ["b/web-1", "b/web-1"]),
        (Sight(coverage=Coverage(namespaces={"prod": frozenset(("karmada-system",))})), []),
    ],
)
async def test_only_what_is_in_sight_is_found_and_counted(
    index: IndexAccess, sight: Sight, expected: list[str]
) -> None:
    reply = await search(index, "web", call(sight), count=True)
    assert [f"{hit.namespace}/{hit.name}" for hit in reply.items] == expected
    assert reply.total == len(expected)
    assert sum(each.count for each in reply.clusters) == len(expected)


async def test_a_search_can_be_limited_to_instances_clusters_kinds_and_namespaces(index: IndexAccess) -> None:
    assert len((await search(index, "web", instance=["prod"])).items) == 8
    assert len((await search(index, "web", cluster=["frankfurt", "nowhere"])).items) == 4
    assert len((await search(index, "web", cluster=["frankfurt"], kind=["nodes"])).items) == 1
    assert len((await search(index, "web", namespace="a")).items) == 3


async def test_a_hit_says_which_words_matched_where(index: IndexAccess) -> None:
    reply = await search(index, "web shop nginx pod", cluster=["lonely"], limit=1)
    assert [(match.word, match.part, match.text) for match in reply.items[0].matches] == [
        ("web", MatchedPart.NAME, "web-0"),
        ("shop", MatchedPart.LABEL, "app=shop"),
        ("nginx", MatchedPart.IMAGE, "docker.io/library/nginx:1.29"),
        ("pod", MatchedPart.KIND, "Pod"),
    ]


async def test_a_page_token_is_good_for_the_same_query_and_caller_only(index: IndexAccess) -> None:
    whole = places(await search(index, "web"))
    found: list[str] = []
    token = ""
    while True:
        page = await search(index, "web", limit=5, after=token)
        found += places(page)
        token = page.next
        if not token:
            break
    assert found == whole
    first = await search(index, "web", limit=5)
    for question, who, after in (
        ("node", "alice", first.next),
        ("web", "bob", first.next),
        ("web", "alice", first.next[:-2] + "AA"),
        ("web", "alice", "k1.x"),
        ("web", "alice", "' OR 1=1"),
    ):
        with pytest.raises(InvalidArgument):
            await search(index, question, call(who=who), after=after)


@pytest.mark.parametrize("query", [" ", "\t\n", "a\0b"])
async def test_what_cannot_be_searched_for_is_refused(index: IndexAccess, query: str) -> None:
    with pytest.raises(InvalidArgument):
        await search(index, query)


async def test_without_an_index_search_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        await search(IndexAccess(IndexLocation()), "web")


async def test_a_watch_sends_the_changes_in_sight_of_all_clusters(index: IndexAccess, tmp_path: Path) -> None:
    sight = Sight(coverage=Coverage(namespaces={"prod": frozenset(("a",))}))
    service = SearchService(Own(), index)  # type: ignore[arg-type]
    events = service.watch_objects(WatchObjectsRequest(kind=["pods"]), call(sight))
    assert (await anext(events)).change is ObjectChange.BEGAN
    builder = RecordBuilder(kinds.PODS)
    for cluster, namespace, name in (
        ("lonely", "a", "out-of-sight"),
        ("frankfurt", "b", "out-of-sight"),
        ("frankfurt", "karmada-system", "out-of-sight"),
        ("frankfurt", "a", "new"),
        ("k-prod", "a", "web-0"),
    ):
        writer = await SqliteWriter.open(tmp_path, f"uid-{cluster}")
        await writer.begin(kinds.PODS)
        await writer.end(kinds.PODS, 200)
        change = Change(builder.record(body(name, namespace=namespace, revision=201)), deleted=False)
        await writer.apply(kinds.PODS, [change], 201)
        await writer.close()
    told = []
    async for event in events:
        assert event.object is not None
        told.append((event.change, event.object.cluster, event.object.namespace, event.object.name, event.object.kind))
        if len(told) == 4:
            break
    await events.aclose()  # type: ignore[attr-defined]
    assert sorted(told) == sorted(
        [
            (ObjectChange.CHANGED, "frankfurt", "a", "new", "Pod"),
            (ObjectChange.CHANGED, "", "a", "web-0", "Pod"),
            (ObjectChange.DELETED, "frankfurt", "a", "web-0", "Pod"),
            (ObjectChange.DELETED, "", "a", "web-0", "Pod"),
        ]
    )


async def test_whoever_may_search_finds_what_they_may_list(index: IndexAccess) -> None:
    """A custom role may allow to search and to see Pods, in one instance or in one namespace."""
    one = call()
    one.coverage_of = lambda permission: Coverage(everywhere=permission == "kairship.pods.get")
    found = await search(index, "web", one, count=True)
    assert {hit.resource for hit in found.items} == {"pods"}
    assert [each.name for each in found.kinds] == ["pods"]
    one.coverage_of = lambda permission: Coverage(
        everywhere=permission == "kairship.nodes.get",
        namespaces={"prod": frozenset({"a"})} if permission == "kairship.pods.get" else {},
    )
    found = await search(index, "web", one)
    assert {(hit.resource, hit.namespace) for hit in found.items} == {("pods", "a"), ("nodes", "")}
    one.coverage_of = lambda _: Coverage()
    assert (await search(index, "web", one)).items == []


async def test_members_are_searched_by_those_who_may_reach_them(index: IndexAccess) -> None:
    """What the native proxy does not open is not found either."""

    def places_of(found: SearchObjectsResponse) -> set[tuple[str, str]]:
        return {(hit.cluster, hit.namespace) for hit in found.items if hit.resource == "pods"}

    one = call(Sight(coverage=Coverage(instances=frozenset({"prod"}))))
    inside = places_of(await search(index, "web", one, instance=["prod"], limit=100))
    assert {cluster for cluster, _ in inside} == {"", "frankfurt"}
    one.coverage_of = lambda permission: Coverage(everywhere=permission != "kairship.clusters.proxy")
    found = places_of(await search(index, "web", one, instance=["prod"], limit=100))
    assert found == {place for place in inside if place[0] == ""}
    one.coverage_of = lambda permission: (
        Coverage(namespaces={"prod": frozenset({"a"})})
        if permission == "kairship.clusters.proxy"
        else Coverage(everywhere=True)
    )
    found = places_of(await search(index, "web", one, instance=["prod"], limit=100))
    assert found == {place for place in inside if place[0] == "" or place[1] == "a"}


async def test_what_nobody_gets_through_the_plane_is_not_found(index: IndexAccess, tmp_path: Path) -> None:
    writer = await SqliteWriter.open(tmp_path, "uid-k-prod")
    requests = Resource.of(
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        kind="CertificateSigningRequest",
        namespaced=False,
    )
    await fill(writer, requests, body("web-masters", namespace=""))
    await fill(writer, kinds.WORKS, body("web-masters", namespace="a"))
    await writer.close()
    found = await search(index, "masters", count=True)
    assert (found.items, found.total) == ([], 0)
