"""Where objects went: their bindings, and the clusters in them, as views show them."""

import asyncio
from collections.abc import Mapping, Sequence

from kairship.apiserver.services.cluster.view import provider_of
from kairship.apiserver.services.resources.kind import Kind, Placed
from kairship.apiserver.services.resources.reader import Binding, Reader
from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterProviderSummary
from kairship.kube import Object
from kairship.rpc.calls import Call

Placements = Mapping[str, Placed]
"""By the uid of the object."""


async def placements(
    reader: Reader, kind: Kind, instance: str, objects: Sequence[Object], *, namespace: str | None, call: Call
) -> Placements:
    """Nothing for kinds that do not tell."""
    if not kind.is_placed or not objects:
        return {}
    bindings, providers = await asyncio.gather(
        reader.bindings_of(instance, objects, namespace=namespace, call=call),
        reader.providers(instance, call),
    )
    return {uid: placed(binding, providers) for uid, binding in bindings.items()}


def placed(binding: Binding, providers: Mapping[str, str]) -> Placed:
    clusters = (
        ClusterProviderSummary(name=name, provider=provider_of(providers.get(name, "")), applied=applied)
        for name, applied in sorted(binding.clusters().items())
    )
    return Placed(tuple(clusters), sum(target.replicas for target in binding.spec.clusters or ()))
