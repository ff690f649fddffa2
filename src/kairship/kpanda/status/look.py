"""One look at a cluster with the credential that its Secret holds at this moment.

Each look has a connection of its own and keeps nothing: what it has found belongs to the very version of the Secret
that it was found with.
"""

import datetime as dt
from collections.abc import Mapping

import msgspec

from kairship.instances.credentials.expiry import expires_at
from kairship.instances.pool_sources import KubeconfigMissing, read_secret
from kairship.kpanda.credentials.form import read_kept
from kairship.kpanda.observation.asking import asking
from kairship.kpanda.observation.identity import identity_of
from kairship.kpanda.observation.network import Network, network_of
from kairship.kpanda.observation.nodes import NodeSum, sum_nodes
from kairship.kpanda.observation.pods import sum_requests
from kairship.kpanda.observation.usage import sum_usage
from kairship.kube import AddressRule, Client, ConfigError, Connection, Forbidden, KubeError, NotFound


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look has found. A part that could not be asked for is None."""

    secret_version: str = ""
    """The resourceVersion of the Secret; empty if there is no credential that could be used."""
    endpoint: str = ""
    expires_at: dt.datetime | None = None
    unusable: str = ""
    """Why the kubeconfig cannot be used."""
    missing: str = ""
    """Why there is no kubeconfig."""
    error: KubeError | None = None
    """What kept the look from its end."""
    id: str = ""
    kubernetes_version: str = ""
    nodes: NodeSum | None = None
    network: Network | None = None
    requests: Mapping[str, str] | None = None
    usage: Mapping[str, str] | None = None


async def look(home: Client, *, secret: str, endpoint: str | None, addresses: AddressRule, timeout: float) -> Seen:
    """`home` is the global cluster. Raises its errors; those of the cluster are part of what was seen."""
    try:
        version, kubeconfig = await read_secret(home, secret)
    except (NotFound, KubeconfigMissing):
        return Seen(missing=f"Secret {secret} does not exist or has no kubeconfig; give the cluster a new credential")
    try:
        connection = await read_kept(kubeconfig, endpoint=endpoint)
    except ConfigError as error:
        return Seen(unusable=str(error))
    seen = Seen(secret_version=version, endpoint=connection.server, expires_at=expires_at(connection))
    return await _ask(connection, seen, addresses, timeout)


async def _ask(connection: Connection, seen: Seen, addresses: AddressRule, timeout: float) -> Seen:
    found: dict[str, object] = {}
    try:
        async with asking(connection, addresses, timeout=timeout) as client:
            found["id"] = await identity_of(client, timeout=timeout)
            found["kubernetes_version"] = (await client.version()).git_version[:64]
            try:
                found["nodes"] = nodes = await sum_nodes(client, timeout=timeout)
                found["network"] = await network_of(client, nodes.pod_ranges, timeout=timeout)
                found["requests"] = await sum_requests(client, timeout=timeout)
                found["usage"] = await sum_usage(client, timeout=timeout)
            except (Forbidden, NotFound):
                pass  # a cluster that shows less of itself, such as a Karmada, is not ill for that
    except KubeError as error:
        # With its traceback it would keep the whole call in memory.
        found["error"] = error.with_traceback(None)
    return msgspec.structs.replace(seen, **found)
