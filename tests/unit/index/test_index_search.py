"""Search on both databases, compared with a model that examines every object: hits, ranks, counts and pages."""

import random
from typing import Any, NamedTuple

import msgspec
import pytest
from support.index_objects import body, fill
from support.index_stores import Store

from kairship.index import BadSelectorError, Hit, Rank, Search, SearchPosition, VisibleScope, kind_name, words_of
from kairship.index.sqlite import search_words
from kairship.kube import Resource, kinds

WORDS = ("web", "db", "cart", "a", "pod", "x1")
KINDS = (kinds.PODS, kinds.CONFIGMAPS, kinds.DEPLOYMENTS, kinds.NODES)
QUESTIONS = (
    *("web", "w", "we", "eb", "b", "cart web", "web cart", "pod", "pods", "po", "deployment web", "node", "cm", "a"),
    *(
        "team=db",
        "team",
        "example/web",
        "nginx",
        "ngi",
        "ng",
        "web-cart",
        "space-a",
        "sp",
        "x1 web a",
        "zzz",
        "web zzz",
    ),
    *(
        "WEB",
        "1.2",
        "-",
        "=",
        "/",
        "%",
        "_",
        "\\",
        "'",
        '"',
        "web' OR 1=1 --",
        '"web" OR',
        "*",
        "NEAR(web)",
        "name:web",
    ),
    *("😀", "\x1b", "\u202e", "' UNION SELECT 1 --", "{}", "{text}", "?1", "$1"),
)


class Thing(NamedTuple):
    cluster: str
    resource: Resource
    namespace: str
    name: str
    labels: dict[str, str]
    images: tuple[str, ...]

    def rank(self, word: str) -> Rank | None:
        """The best rank at which an object contains a word."""
        short = len(word) < 3
        name, kind = self.name.lower(), kind_name(self.resource)
        if self.name.startswith(word):
            return Rank.NAME_BEGINS
        if not short and word in name:
            return Rank.NAME
        shorts = {"po": "pods", "cm": "configmaps", "no": "nodes"}
        called = (kind, self.resource.kind.lower())
        if any(one.startswith(word) if short else word in one for one in called) or shorts.get(word) == kind:
            return Rank.KIND
        if self.namespace.startswith(word) if short else word in self.namespace:
            return Rank.NAMESPACE
        pairs = [f"{key}={value}".lower() for key, value in self.labels.items()]
        if any(f"={word}" in pair if short else word in pair for pair in pairs):
            return Rank.LABEL
        if any(f"/{word}" in f"/{image}" if short else word in image for image in self.images):
            return Rank.IMAGE
        return None

    def position(self, rank: Rank) -> SearchPosition:
        return SearchPosition(int(rank), self.name, self.cluster, kind_name(self.resource), self.namespace)


def expected(things: list[Thing], asked: Search) -> list[SearchPosition]:
    found = []
    for thing in things:
        ranks = [thing.rank(word) for word in asked.words]
        visible = any(
            scope.cluster == thing.cluster
            and (scope.kinds is None or kind_name(thing.resource) in scope.kinds)
            and (scope.namespaces is None or thing.namespace in scope.namespaces)
            for scope in asked.scopes
        )
        wanted = (asked.kinds is None or kind_name(thing.resource) in asked.kinds) and (
            not asked.namespace or thing.namespace == asked.namespace
        )
        if visible and wanted and None not in ranks and ranks[0] is not None:
            found.append(thing.position(ranks[0]))
    return sorted(found)


@pytest.fixture
async def things(store: Store) -> list[Thing]:
    chance = random.Random(7)  # noqa: S311 - the same things every time
    made: list[Thing] = []
    for cluster in ("one", "two"):
        writer = await store.writer(cluster)
        for resource in KINDS:
            several: dict[tuple[str, str], Thing] = {}
            for _ in range(40):
                name = "-".join(chance.sample(WORDS, chance.randint(1, 2)))
                namespace = f"space-{chance.choice('ab')}" if resource.namespaced else ""
                labels = {"team": chance.choice(WORDS), "Kept-By": "Ops"} if chance.random() < 0.6 else {}
                has_images = resource in (kinds.PODS, kinds.DEPLOYMENTS)
                images = (f"r.example/{chance.choice(WORDS)}:1.{chance.randint(1, 3)}", "nginx")
                thing = Thing(cluster, resource, namespace, name, labels, images if has_images else ())
                several[namespace, name] = thing
            await fill(writer, resource, *(_body(thing) for thing in several.values()))
            made += several.values()
    return made


def _body(thing: Thing) -> bytes:
    containers = [{"image": image} for image in thing.images]
    spec: Any = {"containers": containers}
    if thing.resource == kinds.DEPLOYMENTS:
        spec = {"template": {"spec": {"containers": containers[:1], "initContainers": containers[1:]}}}
    return body(thing.name, namespace=thing.namespace, labels=thing.labels, spec=spec)


async def all_pages(store: Store, asked: Search) -> list[Hit]:
    """All hits, read in small pages."""
    found: list[Hit] = []
    after = None
    while True:
        page = await store.index.search(_like(asked, limit=7, after=after))
        found += page
        if len(page) < 7:
            return found
        after = page[-1].position


def _like(asked: Search, **changes: Any) -> Search:
    return msgspec.structs.replace(asked, **changes)


@pytest.mark.parametrize("rare", [0, 30, 10**6])
async def test_what_is_found_is_what_looking_at_everything_finds(
    store: Store, things: list[Thing], rare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_words, "RARE", rare)
    everything = (VisibleScope("one"), VisibleScope("two"))
    some = (
        VisibleScope("one", namespaces=frozenset(("space-a",))),
        VisibleScope("two", kinds=frozenset(("pods", "nodes"))),
    )
    for text in QUESTIONS:
        for scopes, narrowed in (
            (everything, {}),
            (everything, {"kinds": frozenset(("pods",)), "namespace": "space-b"}),
            (some, {}),
        ):
            asked = Search(words=words_of(text), scopes=scopes, limit=1000, **narrowed)  # type: ignore[arg-type]
            wanted = expected(things, asked)
            assert [hit.position for hit in await store.index.search(asked)] == wanted, text
            assert [hit.position for hit in await all_pages(store, asked)] == wanted, text
            counts = await store.index.search_counts(asked)
            assert sum(counts.values()) == len(wanted), text


async def test_nothing_may_be_seen_without_a_scope(store: Store, things: list[Thing]) -> None:
    assert things
    for scopes in (
        (),
        (VisibleScope("one", kinds=frozenset()),),
        (VisibleScope("one", namespaces=frozenset()),),
        (VisibleScope("none"),),
    ):
        asked = Search(words=("web",), scopes=scopes)
        assert await store.index.search(asked) == []
        assert await store.index.search_counts(asked) == {}


async def test_what_is_deleted_is_not_found(store: Store) -> None:
    writer = await store.writer("one")
    await fill(writer, kinds.CONFIGMAPS, body("web-1"), body("web-2", labels={"team": "red"}))
    asked = Search(words=("web",), scopes=(VisibleScope("one"),))
    assert len(await store.index.search(asked)) == 2
    await fill(writer, kinds.CONFIGMAPS, body("web-1", revision=5), revision=101)
    assert [hit.position.name for hit in await store.index.search(asked)] == ["web-1"]
    assert await store.index.search(Search(words=("red",), scopes=(VisibleScope("one"),))) == []
    await writer.drop_kind(kinds.CONFIGMAPS)
    assert await store.index.search(asked) == []


@pytest.mark.parametrize("text", ["\0", "web\0", "x" * 300])
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(BadSelectorError):
        words_of(text)


def test_no_more_words_than_are_bearable() -> None:
    assert len(words_of(" ".join(f"w{number}" for number in range(60)))) == 16
