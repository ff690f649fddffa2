"""Objects found by what they say, in step with the reflector that they come from."""

from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Grouping, Metadata, MetadataOnly, Metrics, Reflector, Selection
from kairship.reconcile.following import Changed, Listed, ListEnded
from kairship.reconcile.testing import FakeClock


def labelled(name: str, group: str | None, *, version: str = "1") -> MetadataOnly:
    labels = {"group": group} if group else None
    return MetadataOnly(Metadata(name=name, resource_version=version, labels=labels))


def says(obj: MetadataOnly) -> str | None:
    return (obj.metadata.labels or {}).get("group")


async def test_those_that_say_the_same_are_found_and_the_others_are_not() -> None:
    async with Client(Connection(server="https://192.0.2.1")) as client:
        selection = Selection(kinds.NAMESPACES, MetadataOnly)
        reflector = Reflector(client, selection, clock=FakeClock(), metrics=Metrics())
        grouping = Grouping(reflector, says)

        def found(word: str) -> set[str]:
            return {each.metadata.name for each in grouping.of(word)}

        # Whoever hears of a change later finds it here already.
        heard: list[set[str]] = []
        reflector.subscribe(lambda _: heard.append(found("a")))
        reflector._take(Listed([labelled("one", "a"), labelled("two", "a"), labelled("three", None)]))
        reflector._take(ListEnded("1"))
        assert heard == [{"one"}, {"one", "two"}, {"one", "two"}]
        reflector._take(Changed("MODIFIED", labelled("two", "b"), "2"))
        assert (found("a"), found("b")) == ({"one"}, {"two"})
        # What only has another version wakes nobody, and is found as it is now.
        reflector._take(Changed("MODIFIED", labelled("one", "a", version="9"), "9"))
        assert [each.metadata.resource_version for each in grouping.of("a")] == ["9"]
        reflector._take(Changed("DELETED", labelled("one", "a"), "10"))
        assert (found("a"), found("")) == (set(), set())
