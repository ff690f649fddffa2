"""One search: the query to the index, which includes the caller's rights, and its reply."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kairship.apiserver.services.search.searchable_clusters import SearchableCluster
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
    CurrentIndex,
    Hit,
    NoSuchClusterError,
    Partition,
    Rank,
    Search,
    VisibleScope,
    highlights,
    kind_name,
    words_of,
)
from kairship.index.index_access import OpenIndex
from kairship.rpc.calls import Call
from kairship.rpc.errors import InvalidArgument, Unavailable

_DEFAULT_LIMIT = 20
_MATCHED_PARTS = {
    Rank.NAME_BEGINS: MatchedPart.NAME,
    Rank.NAME: MatchedPart.NAME,
    Rank.KIND: MatchedPart.KIND,
    Rank.NAMESPACE: MatchedPart.NAMESPACE,
    Rank.LABEL: MatchedPart.LABEL,
    Rank.IMAGE: MatchedPart.IMAGE,
}


async def search(
    opened: OpenIndex, request: SearchObjectsRequest, call: Call, clusters: Mapping[str, SearchableCluster]
) -> SearchObjectsResponse:
    """Searches these clusters, given by uid, as far as they are in the caller's sight."""
    try:
        visible = [cluster for cluster in clusters.values() if cluster.scope(call.sight) is not None]
        collected = {cluster.uid: await _partitions(opened.current, cluster) for cluster in visible}
        scopes = tuple(
            scope
            for cluster in visible
            for scope in cluster.scopes([kind_name(each.resource) for each in collected[cluster.uid]], call)
        )
        query = _query(request, scopes, opened, call)
        hits = await opened.current.index.search(msgspec.structs.replace(query, limit=query.limit + 1))
        counts = await opened.current.index.search_counts(query) if request.count else {}
        age, gaps = _freshness(opened.current, visible, collected)
    except BrokenIndexError as error:
        raise Unavailable("the index cannot be searched at present; try again", retry_after=2.0) from error
    call.note_age(age)
    more = len(hits) > query.limit
    hits = hits[: query.limit]
    return SearchObjectsResponse(
        items=[_shown(hit, query.words, clusters) for hit in hits],
        next=_next_page(opened, hits, request, call) if more else "",
        total=sum(counts.values()),
        kinds=_counted(counts, lambda _, kind: kind),
        clusters=_counted(counts, lambda cluster, _: clusters[cluster].shown_name),
        age_milliseconds=round(age * 1000),
        gaps=gaps,
    )


def _query(request: SearchObjectsRequest, scopes: tuple[VisibleScope, ...], opened: OpenIndex, call: Call) -> Search:
    try:
        words = words_of(request.query)
        after = (
            opened.tokens.read_for_search(request.after, _context(request), caller=call.caller.id)
            if request.after
            else None
        )
    except BadSelectorError as error:
        raise InvalidArgument(violations=[("query", str(error))]) from None
    except BadTokenError:
        raise InvalidArgument(violations=[("after", "must be `next` of a reply to this search")]) from None
    if not words:
        raise InvalidArgument(violations=[("query", "must have at least one word")])
    return Search(
        words=words,
        scopes=scopes,
        kinds=frozenset(request.kind) or None,
        namespace=request.namespace or None,
        limit=request.limit or _DEFAULT_LIMIT,
        after=after,
    )


def _next_page(opened: OpenIndex, hits: Sequence[Hit], request: SearchObjectsRequest, call: Call) -> str:
    return opened.tokens.issue_for_search(hits[-1].position, _context(request), caller=call.caller.id)


def _context(request: SearchObjectsRequest) -> list[object]:
    """Returns what a page token is bound to: the query, but not what the caller happens to see at the moment."""
    return [
        words_of(request.query),
        *(sorted(set(values)) for values in (request.instance, request.cluster, request.kind)),
        request.namespace,
    ]


async def _partitions(current: CurrentIndex, cluster: SearchableCluster) -> list[Partition]:
    try:
        return await current.index.partitions(cluster.uid)
    except NoSuchClusterError:
        return []


def _freshness(
    current: CurrentIndex, clusters: Sequence[SearchableCluster], collected: Mapping[str, list[Partition]]
) -> tuple[float, list[Gap]]:
    """Returns the age of the oldest data in the reply in seconds, and the clusters whose data may be incomplete."""
    oldest, gaps = 0.0, []
    for cluster in clusters:
        name, partitions = cluster.shown_name, collected[cluster.uid]
        live = [partition for partition in partitions if partition.live]
        age = max((current.age(partition) for partition in live), default=0.0)
        oldest = max(oldest, age)
        if not partitions:
            gaps.append(Gap(cluster=name, reason="nothing of it was collected yet"))
        elif len(live) < len(partitions):
            gaps.append(Gap(cluster=name, reason=f"{len(partitions) - len(live)} of its kinds are being listed"))
        elif not current.is_recent(age):
            gaps.append(Gap(cluster=name, reason=f"its data is {age:.0f} s old"))
    return oldest, gaps


def _shown(hit: Hit, words: tuple[str, ...], clusters: Mapping[str, SearchableCluster]) -> ShownHit:
    cluster, position = clusters[hit.position.cluster], hit.position
    return ShownHit(
        instance=cluster.instance,
        cluster="" if cluster.virtual else cluster.name,
        group=hit.resource.group,
        version=hit.resource.version,
        kind=hit.resource.kind,
        resource=hit.resource.plural,
        namespace=position.namespace,
        name=position.name,
        uid=hit.uid,
        created_at=hit.created,
        matches=[
            Match(word=each.word, part=_MATCHED_PARTS[each.rank], text=each.text) for each in highlights(hit, words)
        ],
    )


def _counted(counts: Mapping[tuple[str, str], int], name: Callable[[str, str], str]) -> list[SearchCount]:
    summed: Counter[str] = Counter()
    for (cluster, kind), count in counts.items():
        summed[name(cluster, kind)] += count
    ordered = sorted(summed.items(), key=lambda pair: (-pair[1], pair[0]))
    return [SearchCount(name=each, count=count) for each, count in ordered]
