"""Joining a cluster to a Karmada instance in push mode, and taking it out again.

Functions of two clients: one with every right in the instance, one in the member. All of them are idempotent: what a
killed call left behind, the next one completes. In the member Karmada gets two service accounts with permanent tokens,
because Karmada stores tokens and never renews them; in the instance two Secrets and a ``Cluster``, which owns them.

A member belongs to one instance. Two would share the namespace and the impersonator in the member, and leaving one
would break the other: a cluster whose identity is already known under another name is refused.
"""

import asyncio
import base64
from typing import Any

import msgspec

from kairship.instances.drivers.waiting import until
from kairship.kube import Client, Connection, NotFound, Resource, kinds

FIELD_MANAGER = "kairship-membership"
NAMESPACE = "karmada-cluster"
IMPERSONATOR = "karmada-impersonator"
PATIENCE = 30.0

Manifest = dict[str, Any]


class JoinRefused(Exception):  # noqa: N818 -- says what is the case
    """The cluster must not join; the message says why."""


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as Karmada shall know it."""

    name: str
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}


async def join(*, instance: Client, member: Client, reached_at: Connection, wanted: Join) -> None:
    """Make ``member``, which Karmada reaches at that connection's address, a cluster of ``instance``."""
    identity = await _identity(member)
    await _refuse_duplicate(instance, wanted.name, identity)
    account = _account(wanted.name)
    await _prepare_member(member, account)
    token, impersonator = await asyncio.gather(_token(member, account), _token(member, IMPERSONATOR))

    await _apply(instance, _object("v1", "Namespace", NAMESPACE))
    authority = base64.b64encode(reached_at.ca or b"").decode()
    secrets = {
        wanted.name: {"caBundle": authority, "token": token},
        f"{wanted.name}-impersonator": {"token": impersonator},
    }
    for name, data in secrets.items():
        await _apply(instance, _object("v1", "Secret", name, NAMESPACE, type="Opaque", data=data))
    cluster = await _apply(instance, _cluster(wanted, identity, reached_at))
    owner = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "name": wanted.name,
        "uid": cluster["metadata"]["uid"],
    }
    for name, data in secrets.items():
        secret = _object("v1", "Secret", name, NAMESPACE, type="Opaque", data=data)
        secret["metadata"]["ownerReferences"] = [owner]
        await _apply(instance, secret)


async def wait_ready(instance: Client, name: str, *, timeout: float = PATIENCE) -> None:
    """Return when Karmada has found the cluster ready."""

    async def ready() -> str | None:
        cluster = await instance.get(kinds.CLUSTERS, name)
        for condition in cluster.get("status", {}).get("conditions") or []:
            if condition["type"] == "Ready":
                return None if condition["status"] == "True" else str(condition.get("message", "not ready"))
        return "Karmada has not looked at it yet"

    await until(ready, what=f"cluster {name} becoming ready", timeout=timeout)


async def leave(*, instance: Client, member: Client | None, name: str, timeout: float = 120.0) -> None:
    """Take the cluster out of the instance, then clean up in the member.

    Without a ``member`` to talk to (it is dead for good) Karmada cannot remove what it placed there: its finalizers are
    taken away instead, so that nothing in the instance waits for it.
    """
    await instance.delete(kinds.CLUSTERS, name, missing_ok=True)
    if member is None:
        await _strip(instance, name)

    async def gone() -> str | None:
        try:
            cluster = await instance.get(kinds.CLUSTERS, name)
        except NotFound:
            return None
        return f"finalizers remain: {', '.join(cluster['metadata'].get('finalizers') or [])}"

    await until(gone, what=f"cluster {name} leaving", timeout=timeout)
    if member is not None:
        await _clean_member(member, _account(name))


async def _identity(member: Client) -> str:
    """What makes a cluster the same cluster under every name and address: the UID of its ``kube-system``."""
    namespace = await member.get(kinds.NAMESPACES, "kube-system")
    return str(namespace["metadata"]["uid"])


async def _refuse_duplicate(instance: Client, name: str, identity: str) -> None:
    for cluster in (await instance.list(kinds.CLUSTERS)).items:
        known, its_identity = cluster["metadata"]["name"], cluster["spec"].get("id")
        if known == name and its_identity not in (identity, None):
            raise JoinRefused(f"another cluster has already joined as {name!r}: choose another name")
        if known != name and its_identity == identity:
            raise JoinRefused(f"this cluster has already joined under the name {known!r}")


async def _prepare_member(member: Client, account: str) -> None:
    await _apply(member, _object("v1", "Namespace", NAMESPACE))
    role = f"karmada-controller-manager:{account}"
    everything = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    rbac = "rbac.authorization.k8s.io/v1"
    objects = [
        _object(rbac, "ClusterRole", role, rules=everything),
        _object(rbac, "ClusterRoleBinding", role, roleRef=reference, subjects=[subject]),
    ]
    for name in (account, IMPERSONATOR):
        secret = _object("v1", "Secret", name, NAMESPACE, type="kubernetes.io/service-account-token")
        secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": name}
        objects += [_object("v1", "ServiceAccount", name, NAMESPACE), secret]
    for item in objects:
        await _apply(member, item)


async def _token(member: Client, account: str) -> str:
    """The token, as the member's controller has put it into the Secret. Base64, as Secrets carry it."""
    found = ""

    async def issued() -> str | None:
        nonlocal found
        secret = await member.get(kinds.SECRETS, account, namespace=NAMESPACE)
        found = (secret.get("data") or {}).get("token", "")
        return None if found else "the member has not issued a token yet"

    await until(issued, what=f"a token for {account}", timeout=PATIENCE)
    return found


def _cluster(wanted: Join, identity: str, reached_at: Connection) -> Manifest:
    spec: Manifest = {
        "syncMode": "Push",
        "id": identity,
        "apiEndpoint": reached_at.server,
        "secretRef": {"namespace": NAMESPACE, "name": wanted.name},
        "impersonatorSecretRef": {"namespace": NAMESPACE, "name": f"{wanted.name}-impersonator"},
    }
    if wanted.provider:
        spec["provider"] = wanted.provider
    if wanted.region:
        spec["region"] = wanted.region
    if wanted.zones:
        spec["zones"] = list(wanted.zones)
    cluster = _object("cluster.karmada.io/v1alpha1", "Cluster", wanted.name, spec=spec)
    cluster["metadata"]["labels"] = dict(wanted.labels)
    return cluster


async def _strip(instance: Client, name: str) -> None:
    """Remove the finalizers that only a living member could satisfy: of its Works, their namespace, the Cluster."""
    namespace = f"karmada-es-{name}"
    nothing = {"metadata": {"finalizers": None}}
    async for page in instance.pages(kinds.WORKS, namespace=namespace):
        for work in page.items:
            await _patch_if_there(instance, kinds.WORKS, work["metadata"]["name"], nothing, namespace)
    await _patch_if_there(instance, kinds.CLUSTERS, name, nothing)


async def _patch_if_there(
    client: Client, resource: Resource, name: str, patch: Manifest, namespace: str | None = None
) -> None:
    try:
        await client.patch(resource, name, patch, namespace=namespace)
    except NotFound:
        return


async def _clean_member(member: Client, account: str) -> None:
    role = f"karmada-controller-manager:{account}"
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, role, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, role, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, IMPERSONATOR, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, IMPERSONATOR, missing_ok=True)
    # Service accounts, tokens and whatever Karmada kept beside them.
    await member.delete(kinds.NAMESPACES, NAMESPACE, missing_ok=True)


def _account(cluster: str) -> str:
    return f"karmada-{cluster}"


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


async def _apply(client: Client, item: Manifest) -> Manifest:
    return await client.apply_object(item, field_manager=FIELD_MANAGER)
