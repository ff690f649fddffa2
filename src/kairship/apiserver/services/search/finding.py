"""One search: the question to the index, with the caller's rights in it, and its answer as it is shown."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kairship.apiserver.services.search.places import Place
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import (
    Gap,
    Match,
    MatchedPart,
    SearchCount,
    SearchObjectsRequest,
    SearchObjectsResponse,
)
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import Hit as ShownHit
from kairship.index import (
    BadSelectorError,
    BadTokenError,
    BrokenIndexError,
    Current,
    Hit,
    NoSuchClusterError,
    Partition,
    Rank,
    Scope,
    Search,
    highlights,
    kind_name,
    words_of,
)
from kairship.index.opening import Opened
from kairship.rpc.calls import Call
from kairship.rpc.errors import InvalidArgument, Unavailable

_LIMIT = 20
_PARTS = {
    Rank.NAME_BEGINS: MatchedPart.NAME,
    Rank.NAME: MatchedPart.NAME,
    Rank.KIND: MatchedPart.KIND,
    Rank.NAMESPACE: MatchedPart.NAMESPACE,
    Rank.LABEL: MatchedPart.LABEL,
    Rank.IMAGE: MatchedPart.IMAGE,
}


async def find(
    opened: Opened, request: SearchObjectsRequest, call: Call, places: Mapping[str, Place]
) -> SearchObjectsResponse:
    """In these places, by their uids, as far as they are in sight."""
    try:
        searched = [place for place in places.values() if place.scope(call.sight) is not None]
        collected = {place.uid: await _partitions(opened.current, place) for place in searched}
        scopes = tuple(
            scope
            for place in searched
            for scope in place.scopes([kind_name(each.resource) for each in collected[place.uid]], call)
        )
        asked = _asked(request, scopes, opened, call)
        hits = await opened.current.index.search(msgspec.structs.replace(asked, limit=asked.limit + 1))
        counts = await opened.current.index.search_counts(asked) if request.count else {}
        age, gaps = _freshness(opened.current, searched, collected)
    except BrokenIndexError as error:
        raise Unavailable("the index cannot be searched at present; try again", retry_after=2.0) from error
    call.note_age(age)
    more = len(hits) > asked.limit
    hits = hits[: asked.limit]
    return SearchObjectsResponse(
        items=[_shown(hit, asked.words, places) for hit in hits],
        next=opened.tokens.seal(hits[-1].position, _context(request), caller=call.caller.id) if more else "",
        total=sum(counts.values()),
        kinds=_counted(counts, lambda _, kind: kind),
        clusters=_counted(counts, lambda cluster, _: places[cluster].shown_name),
        age_milliseconds=round(age * 1000),
        gaps=gaps,
    )


def _asked(request: SearchObjectsRequest, scopes: tuple[Scope, ...], opened: Opened, call: Call) -> Search:
    try:
        words = words_of(request.query)
        after = opened.tokens.unseal(request.after, _context(request), caller=call.caller.id) if request.after else None
    except BadSelectorError as error:
        raise InvalidArgument(violations=[("query", str(error))]) from None
    except BadTokenError:
        raise InvalidArgument(violations=[("after", "it is not `next` of a reply to this search")]) from None
    if not words:
        raise InvalidArgument(violations=[("query", "there is no word in it")])
    return Search(
        words=words,
        scopes=scopes,
        kinds=frozenset(request.kind) or None,
        namespace=request.namespace or None,
        limit=request.limit or _LIMIT,
        after=after,
    )


def _context(request: SearchObjectsRequest) -> list[object]:
    """What a position is good for: the question, and not what the caller happens to see at the moment."""
    return [
        words_of(request.query),
        *(sorted(set(several)) for several in (request.instance, request.cluster, request.kind)),
        request.namespace,
    ]


async def _partitions(current: Current, place: Place) -> list[Partition]:
    try:
        return await current.index.partitions(place.uid)
    except NoSuchClusterError:
        return []


def _freshness(
    current: Current, places: Sequence[Place], collected: Mapping[str, list[Partition]]
) -> tuple[float, list[Gap]]:
    """The age of the oldest part, and what may be missing."""
    oldest, gaps = 0.0, []
    for place in places:
        name, partitions = place.shown_name, collected[place.uid]
        followed = [partition for partition in partitions if partition.live]
        age = max((current.age(partition) for partition in followed), default=0.0)
        oldest = max(oldest, age)
        if not partitions:
            gaps.append(Gap(cluster=name, reason="nothing of it was collected yet"))
        elif len(followed) < len(partitions):
            gaps.append(Gap(cluster=name, reason=f"{len(partitions) - len(followed)} of its kinds are being listed"))
        elif not current.is_recent(age):
            gaps.append(Gap(cluster=name, reason=f"not heard of for {age:.0f} s"))
    return oldest, gaps


def _shown(hit: Hit, words: tuple[str, ...], places: Mapping[str, Place]) -> ShownHit:
    place, where = places[hit.position.cluster], hit.position
    return ShownHit(
        instance=place.instance,
        cluster="" if place.virtual else place.name,
        group=hit.resource.group,
        version=hit.resource.version,
        kind=hit.resource.kind,
        resource=hit.resource.plural,
        namespace=where.namespace,
        name=where.name,
        uid=hit.uid,
        created_at=hit.created,
        matches=[Match(word=each.word, part=_PARTS[each.rank], text=each.text) for each in highlights(hit, words)],
    )


def _counted(counts: Mapping[tuple[str, str], int], name: Callable[[str, str], str]) -> list[SearchCount]:
    summed: Counter[str] = Counter()
    for (cluster, kind), count in counts.items():
        summed[name(cluster, kind)] += count
    ordered = sorted(summed.items(), key=lambda pair: (-pair[1], pair[0]))
    return [SearchCount(name=each, count=count) for each, count in ordered]
