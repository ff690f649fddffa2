"""Probes a cluster with the credential that its Secret holds at this moment.

Each probe has a connection of its own and keeps nothing: its result belongs to the very version of the Secret with
which it was made.
"""

import datetime as dt
from collections.abc import Mapping

import msgspec

from kairship.instances.credentials.expiry import expires_at
from kairship.instances.pool.sources import KubeconfigMissing, read_secret
from kairship.kpanda.credentials.kubeconfigs import read_stored
from kairship.kpanda.observation.client import observation_client
from kairship.kpanda.observation.network import Network, network_of
from kairship.kpanda.observation.nodes import NodeSum, sum_nodes
from kairship.kpanda.observation.pods import sum_requests
from kairship.kpanda.observation.usage import sum_usage
from kairship.kube import AddressRule, Client, ConfigError, Connection, Forbidden, KubeError, NotFound
from kairship.kube.cluster_identity import cluster_identity


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe has found. A part that could not be read is None."""

    secret_version: str = ""
    """The resourceVersion of the Secret; empty if there is no credential that could be used."""
    endpoint: str = ""
    expires_at: dt.datetime | None = None
    unusable: str = ""
    """Why the kubeconfig cannot be used."""
    missing: str = ""
    """Why there is no kubeconfig."""
    error: KubeError | None = None
    """The error that ended the probe early."""
    id: str = ""
    kubernetes_version: str = ""
    nodes: NodeSum | None = None
    network: Network | None = None
    requests: Mapping[str, str] | None = None
    usage: Mapping[str, str] | None = None


async def probe(
    global_cluster: Client, *, secret: str, endpoint: str | None, addresses: AddressRule, timeout: float
) -> ProbeResult:
    """Raises the errors of the global cluster. The errors of the probed cluster are part of the result."""
    try:
        version, kubeconfig = await read_secret(global_cluster, secret)
    except (NotFound, KubeconfigMissing):
        return ProbeResult(
            missing=f"Secret {secret} does not exist or has no kubeconfig; give the cluster a new credential"
        )
    try:
        connection = await read_stored(kubeconfig, endpoint=endpoint)
    except ConfigError as error:
        return ProbeResult(unusable=str(error))
    result = ProbeResult(secret_version=version, endpoint=connection.server, expires_at=expires_at(connection))
    return await _ask(connection, result, addresses, timeout)


async def _ask(connection: Connection, result: ProbeResult, addresses: AddressRule, timeout: float) -> ProbeResult:
    found: dict[str, object] = {}
    try:
        async with observation_client(connection, addresses, timeout=timeout) as client:
            found["id"] = await cluster_identity(client, timeout=timeout)
            found["kubernetes_version"] = (await client.version()).git_version[:64]
            try:
                found["nodes"] = nodes = await sum_nodes(client, timeout=timeout)
                found["network"] = await network_of(client, nodes.pod_ranges, timeout=timeout)
                found["requests"] = await sum_requests(client, timeout=timeout)
                found["usage"] = await sum_usage(client, timeout=timeout)
            except (Forbidden, NotFound):
                pass  # a cluster that does not serve nodes or pods, such as a Karmada, is healthy all the same
    except KubeError as error:
        # The traceback would keep the whole call in memory.
        found["error"] = error.with_traceback(None)
    return msgspec.structs.replace(result, **found)
