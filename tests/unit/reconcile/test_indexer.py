"""An indexer finds objects by a value and is in step with its reflector."""

from support.reconcile import FakeClock

from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Indexer, Metadata, MetadataOnly, Metrics, Reflector, Selection
from kairship.reconcile.cache.list_watch import Changed, Listed, ListEnded


def labelled(name: str, group: str | None, *, version: str = "1") -> MetadataOnly:
    labels = {"group": group} if group else None
    return MetadataOnly(Metadata(name=name, resource_version=version, labels=labels))


def group_of(obj: MetadataOnly) -> str | None:
    return (obj.metadata.labels or {}).get("group")


async def test_objects_with_the_value_are_found_and_the_others_are_not() -> None:
    async with Client(Connection(server="https://192.0.2.1")) as client:
        selection = Selection(kinds.NAMESPACES, MetadataOnly)
        reflector = Reflector(client, selection, clock=FakeClock(), metrics=Metrics())
        indexer = Indexer(reflector, group_of)

        def found(word: str) -> set[str]:
            return {each.metadata.name for each in indexer.by_value(word)}

        # A handler that subscribes later finds each change in the indexer already.
        heard: list[set[str]] = []
        reflector.subscribe(lambda _: heard.append(found("a")))
        reflector._take(Listed([labelled("one", "a"), labelled("two", "a"), labelled("three", None)]))
        reflector._take(ListEnded("1"))
        assert heard == [{"one"}, {"one", "two"}, {"one", "two"}]
        reflector._take(Changed("MODIFIED", labelled("two", "b"), "2"))
        assert (found("a"), found("b")) == ({"one"}, {"two"})
        # A change of nothing but the version calls no handler, and the object is found as it is now.
        reflector._take(Changed("MODIFIED", labelled("one", "a", version="9"), "9"))
        assert [each.metadata.resource_version for each in indexer.by_value("a")] == ["9"]
        reflector._take(Changed("DELETED", labelled("one", "a"), "10"))
        assert (found("a"), found("")) == (set(), set())
