"""Random queries, answered by both databases and by a simple model in Python."""

import random
from typing import Any

import msgspec
from support.index_objects import body, fill
from support.index_stores import Store

from kairship.index import Change, Position, Query, RecordBuilder, Sort, VisibleScope, kind_name, parse_labels, plan
from kairship.kube import Resource, kinds

KINDS = (kinds.CONFIGMAPS, kinds.SERVICES, kinds.DEPLOYMENTS)
NAMESPACES = ("a", "a-b", "b")
TERMS = (
    "app=x",
    "app!=x",
    "app",
    "!app",
    "app in (x,y)",
    "app notin (x,y)",
    "tier>2",
    "tier<3",
    "tier=1",
    "!tier",
    "on",
)


class Thing(msgspec.Struct, frozen=True):
    cluster: str
    kind: str
    namespace: str
    name: str
    labels: dict[str, str]

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def matches(labels: dict[str, str], term: str) -> bool:
    match term:
        case "app=x":
            return labels.get("app") == "x"
        case "app!=x":
            return labels.get("app") != "x"
        case "app in (x,y)":
            return labels.get("app") in {"x", "y"}
        case "app notin (x,y)":
            return labels.get("app") not in {"x", "y"}
        case "tier>2":
            return labels.get("tier", "").isdecimal() and int(labels["tier"]) > 2
        case "tier<3":
            return labels.get("tier", "").isdecimal() and int(labels["tier"]) < 3
        case "tier=1":
            return labels.get("tier") == "1"
        case _:
            return (term.lstrip("!") in labels) is not term.startswith("!")


def visible(thing: Thing, query: Query) -> bool:
    return any(
        thing.cluster == scope.cluster
        and (scope.kinds is None or thing.kind in scope.kinds)
        and (scope.namespaces is None or thing.namespace in scope.namespaces)
        for scope in query.scopes
    )


def expected(things: list[Thing], query: Query, terms: list[str]) -> list[Position]:
    found = [
        Position(thing.name if query.sort is Sort.NAME else thing.key, thing.cluster, thing.kind, thing.key)
        for thing in things
        if visible(thing, query)
        and (query.kinds is None or thing.kind in query.kinds)
        and (query.namespace is None or thing.namespace == query.namespace)
        and (query.name_contains is None or query.name_contains in thing.name)
        and all(matches(thing.labels, term) for term in terms)
    ]
    found.sort(key=msgspec.structs.astuple, reverse=query.descending)
    if query.after is not None:
        mark = msgspec.structs.astuple(query.after)
        tuples = ((position, msgspec.structs.astuple(position)) for position in found)
        found = [position for position, place in tuples if (place < mark if query.descending else place > mark)]
    return found[: query.limit]


def some_labels(choice: random.Random) -> dict[str, str]:
    return {
        **({"app": choice.choice("xyz")} if choice.random() < 0.7 else {}),
        **({"tier": choice.choice(["1", "2", "3", "none"])} if choice.random() < 0.7 else {}),
        **({"on": ""} if choice.random() < 0.3 else {}),
    }


def some_set(choice: random.Random, *values: str) -> frozenset[str] | None:
    return None if choice.random() < 0.5 else frozenset(choice.sample(values, choice.randint(0, len(values))))


def some_query(choice: random.Random, things: list[Thing], terms: list[str]) -> Query:
    names = [kind_name(resource) for resource in KINDS]
    sort = choice.choice([Sort.KEY, Sort.NAME])
    at = choice.choice(things)
    after = Position(at.name if sort is Sort.NAME else at.key, at.cluster, at.kind, at.key)
    asked: dict[str, Any] = {
        "scopes": tuple(
            VisibleScope(choice.choice(["one", "two"]), some_set(choice, *names), some_set(choice, *NAMESPACES))
            for _ in range(choice.randint(0, 3))
        ),
        "kinds": some_set(choice, *names),
        "namespace": choice.choice([None, None, *NAMESPACES]),
        "labels": parse_labels(",".join(terms)),
        "name_contains": choice.choice([None, None, "1", "n-2"]),
        "sort": sort,
        "descending": choice.random() < 0.5,
        "limit": choice.choice([None, 1, 7]),
        "after": choice.choice([None, after]),
    }
    return Query(**asked)


async def fill_both(store: Store, choice: random.Random) -> list[Thing]:
    things: list[Thing] = []
    for cluster in ("one", "two"):
        writer = await store.writer(cluster)
        for resource in KINDS:
            mine = some_things(choice, cluster, resource)
            bodies = [body(one.name, namespace=one.namespace, labels=one.labels) for one in mine]
            await fill(writer, resource, *bodies)
            things += mine
    return things


async def test_random_questions(store: Store) -> None:
    choice = random.Random(20)  # noqa: S311 - the same questions in every run
    things = await fill_both(store, choice)
    answered = 0
    for _ in range(300):
        terms = choice.sample(TERMS, choice.choice([0, 0, 1, 1, 2, 3]))
        query = some_query(choice, things, terms)
        wanted = expected(things, query, terms)
        assert [row.position for row in await store.index.page(plan(query))] == wanted, (query, terms)
        whole = msgspec.structs.replace(query, limit=None)
        assert await store.index.count(plan(whole)) == len(expected(things, whole, terms)), (query, terms)
        answered += bool(wanted)
    assert answered > 60


async def test_random_walks_by_one_label(store: Store) -> None:
    """The most frequent queries of Kubernetes clients: one kind, one label, in order, in pages, also after changes."""
    choice = random.Random(21)  # noqa: S311 - the same questions in every run
    things = await fill_both(store, choice)
    writer = await store.writer("one")
    for place, thing in enumerate(things):
        if thing.cluster == "one" and choice.random() < 0.3:
            changed = things[place] = msgspec.structs.replace(thing, labels=some_labels(choice))
            resource = next(resource for resource in KINDS if kind_name(resource) == thing.kind)
            record = RecordBuilder(resource).record(
                body(changed.name, namespace=changed.namespace, labels=changed.labels, revision=1000)
            )
            await writer.apply(resource, [Change(record)], 1000)
    for _ in range(100):
        terms = [choice.choice(["app=x", "app", "tier=1", "on"])]
        at = choice.choice([one for one in things if one.cluster == "one"])
        query = Query(
            scopes=(VisibleScope("one"),),
            kinds=frozenset((at.kind,)),
            namespace=choice.choice([None, *NAMESPACES]),
            labels=parse_labels(terms[0]),
            descending=choice.random() < 0.5,
            limit=choice.choice([None, 1, 7]),
            after=choice.choice([None, Position(at.key, at.cluster, at.kind, at.key)]),
        )
        asked = plan(query)
        assert asked.is_walk
        assert [row.position for row in await store.index.page(asked)] == expected(things, query, terms), (query, terms)


def some_things(choice: random.Random, cluster: str, resource: Resource) -> list[Thing]:
    return [
        Thing(cluster, kind_name(resource), namespace, f"n-{number}", some_labels(choice))
        for namespace in NAMESPACES
        for number in range(8)
        if choice.random() < 0.7
    ]
