"""The target clusters of objects, read from their bindings."""

import asyncio
from collections.abc import Mapping, Sequence

from kairship.apiserver.services.cluster_providers import provider_of
from kairship.apiserver.services.resources.kind import Kind, TargetClusters
from kairship.apiserver.services.resources.reader import Binding, Reader
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterProviderSummary
from kairship.kube import Object
from kairship.rpc.calls import Call


async def read_target_clusters(
    reader: Reader, kind: Kind, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
) -> Mapping[str, TargetClusters]:
    """Returns target clusters by the uid of their object; nothing for kinds whose views do not show them."""
    if not kind.shows_target_clusters or not objects:
        return {}
    bindings, providers = await asyncio.gather(
        reader.bindings_of(instance, objects, namespace=namespace, call=call),
        reader.providers(instance, call),
    )
    return {uid: target_clusters(binding, providers) for uid, binding in bindings.items()}


def target_clusters(binding: Binding, providers: Mapping[str, str]) -> TargetClusters:
    clusters = (
        ClusterProviderSummary(name=name, provider=provider_of(providers.get(name, "")), applied=applied)
        for name, applied in sorted(binding.clusters().items())
    )
    return TargetClusters(tuple(clusters), sum(target.replicas for target in binding.spec.clusters or ()))
