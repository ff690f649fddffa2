"""Finds out whether an API server is that of a Karmada, of which release, and which Karmada it is.

The API of a Karmada shows its exact version nowhere. All patches of a minor release serve the same CRDs (checked from
v1.12.0 to v1.19.0-rc.0), and the aggregated API server, which knows the version, serves nothing but its group. What can
be distinguished is the API level: the release that introduced the newest field of PropagationPolicy. Some releases
introduced none: v1.16 looks like v1.15, and v1.19 like v1.18.
"""

import re
from typing import Any

import msgspec

from kairship.instances.drivers.driver import AdoptRefused
from kairship.kube import Client, UnknownKind, kinds
from kairship.kube.cluster_identity import cluster_identity

POLICIES = "propagationpolicies.policy.karmada.io"

# Releases and the field that each introduced, newest first. The last is the oldest that the plane works with: v1.16,
# the oldest release that upstream maintains beside v1.18, serves the API of v1.15.
LEVELS = {
    "v1.18": ("placement", "clusterAffinities", "[]", "overflowAffinities"),
    "v1.17": ("placement", "workloadAffinity"),
    "v1.15": ("failover", "cluster"),
}
OLDEST = "v1.15"

# The last is served by the aggregated API server: while that is down the call fails, and no adoption is refused.
_SERVED = {
    "work.karmada.io/v1alpha2": "ResourceBinding",
    "policy.karmada.io/v1alpha1": "PropagationPolicy",
    "cluster.karmada.io/v1alpha1": "Cluster",
}
_POLICIES = "admissionregistration.k8s.io/v1"


class Identity(msgspec.Struct, frozen=True):
    """What the API of a Karmada shows of it."""

    uid: str
    """Identifies the Karmada under any address (`cluster_identity`)."""
    level: str
    """The release whose API it serves, without the patch: v1.18."""
    kubernetes_version: str


async def require_karmada(client: Client) -> None:
    """Raises `AdoptRefused` if the server does not serve Karmada's APIs and admission policies.

    Discovery needs no permission, so a missing permission is not mistaken for this.
    """
    try:
        await client.discovery.find(_POLICIES, "ValidatingAdmissionPolicy")
    except UnknownKind as error:
        raise AdoptRefused(
            f"the API server at {client.connection.server} is older than Kubernetes v1.30: it does not serve the "
            f"admission policies of {_POLICIES}, without which people could gain rights by Karmada. Upgrade it first"
        ) from error
    for api_version, kind in _SERVED.items():
        try:
            await client.discovery.find(api_version, kind)
        except UnknownKind as error:
            raise AdoptRefused(
                f"{client.connection.server} is no Karmada: it does not serve {kind} of {api_version}. Give the "
                "kubeconfig of the Karmada API server, not that of a member or of the cluster that Karmada runs in"
            ) from error


async def identify(client: Client) -> Identity:
    level = api_level(await client.get(kinds.CRDS, POLICIES))
    if level is None:
        raise AdoptRefused(
            f"the Karmada at {client.connection.server} is older than {OLDEST}, the oldest that can be adopted: "
            "upgrade it first"
        )
    version = await client.version()
    return Identity(uid=await cluster_identity(client), level=level, kubernetes_version=version.git_version)


def api_level(definition: Any) -> str | None:
    """The newest known release whose PropagationPolicy this CRD describes; None if it is too old."""
    schemas = [version["schema"]["openAPIV3Schema"] for version in definition["spec"]["versions"] if version["served"]]
    for level, path in LEVELS.items():
        if any(_has(schema["properties"]["spec"], path) for schema in schemas):
            return level
    return None


def level_of(version: str) -> str | None:
    """The API level of a Karmada version: v1.15 for v1.16.3."""
    minor = _minor(version)
    return next((level for level in LEVELS if _minor(level) <= minor), None)


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


def _has(schema: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        schema = schema.get("items") if part == "[]" else schema.get("properties", {}).get(part)
        if schema is None:
            return False
    return True
