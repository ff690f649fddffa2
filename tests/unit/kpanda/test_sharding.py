"""Every replica divides the clusters in the same way, and when a replica comes or goes only its own shard moves."""

from collections import Counter

from kairship.kpanda.sharding.shard import WholeShard, holder_of

CLUSTERS = [f"cluster-{number}" for number in range(2000)]


def test_everybody_gets_a_fair_part() -> None:
    replicas = [f"replica-{number}" for number in range(4)]
    parts = Counter(holder_of(cluster, replicas) for cluster in CLUSTERS)
    assert set(parts) == set(replicas)
    assert max(parts.values()) < 1.3 * min(parts.values())
    assert all(holder_of(cluster, replicas) == holder_of(cluster, replicas[::-1]) for cluster in CLUSTERS)


def test_only_the_share_of_who_goes_moves() -> None:
    before = {cluster: holder_of(cluster, ["a", "b", "c"]) for cluster in CLUSTERS}
    after = {cluster: holder_of(cluster, ["a", "c"]) for cluster in CLUSTERS}
    assert all(after[cluster] == holder for cluster, holder in before.items() if holder != "b")


def test_alone_one_has_all() -> None:
    assert holder_of("x", ["a"]) == "a"
    assert holder_of("x", []) is None
    assert WholeShard().has("x")
