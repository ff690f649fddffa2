"""Joining a cluster to a Karmada instance in push mode, and taking it out again.

Functions of two clients: one with every right in the instance, one in the member. All of them are idempotent: what a
killed call left behind, the next one completes. In the member Karmada gets two service accounts with permanent tokens,
because Karmada stores tokens and never renews them; in the instance two Secrets and a ``Cluster``, which owns them.

A member belongs to one instance, under one name. Two memberships would share the namespace and the impersonator in the
member, and leaving one would break the other. So both sides are asked: the instance for clusters of the same identity
or name, the member for accounts that it gave to others. The account says which instance it is for.
"""

import asyncio
import base64
from contextlib import aclosing
from typing import Any

import msgspec

from kairship.instances.drivers.waiting import until
from kairship.kube import Client, Connection, NotFound, Object, Resource, kinds

FIELD_MANAGER = "kairship-membership"
NAMESPACE = "karmada-cluster"
IMPERSONATOR = "karmada-impersonator"
# On the account in the member: the identity of the instance that uses it.
USED_BY = "kairship.io/instance"
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
    known = await _admitted(instance, wanted.name, identity)
    account = _account(wanted.name)
    user = await _identity(instance)
    await _refuse_taken(member, account, user)
    await _prepare_member(member, account, user)
    token, impersonator = await asyncio.gather(_token(member, account), _token(member, IMPERSONATOR))

    await _apply(instance, _object("v1", "Namespace", NAMESPACE))
    authority = base64.b64encode(reached_at.ca or b"").decode()
    secrets = {
        wanted.name: {"caBundle": authority, "token": token},
        _impersonator_secret(wanted.name): {"token": impersonator},
    }
    # Karmada reads the Secrets as soon as there is a Cluster, and only the Cluster's UID can make it their owner.
    await _store(instance, secrets, owner=known)
    cluster = await _apply(instance, _cluster(wanted, identity, reached_at))
    await _store(instance, secrets, owner=cluster)


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
    """Take the cluster out of the instance, then clean up in the member. Returns when nothing of it is left.

    Without a ``member`` to talk to (it is dead for good) Karmada cannot remove what it placed there, and would keep its
    own records of it for ever: their finalizers are taken away, and what runs in the member stays there.
    """
    await instance.delete(kinds.CLUSTERS, name, missing_ok=True)
    await until(
        lambda: _departure(instance, name, by_force=member is None), what=f"cluster {name} leaving", timeout=timeout
    )
    # Owned by the Cluster and collected with it, unless the join was killed before it said so.
    for secret in (name, _impersonator_secret(name)):
        await instance.delete(kinds.SECRETS, secret, namespace=NAMESPACE, missing_ok=True)
    if member is not None:
        await _clean_member(member, _account(name), timeout=timeout)


async def _identity(cluster: Client) -> str:
    """What makes a cluster the same cluster under every name and address: the UID of its ``kube-system``."""
    namespace = await cluster.get(kinds.NAMESPACES, "kube-system")
    return str(namespace["metadata"]["uid"])


async def _admitted(instance: Client, name: str, identity: str) -> Object | None:
    """The Cluster as it is if it has joined before. Raises if it must not join."""
    admitted = None
    for cluster in (await instance.list(kinds.CLUSTERS)).items:
        known, its_identity = cluster["metadata"]["name"], cluster["spec"].get("id")
        if known != name and its_identity == identity:
            raise JoinRefused(f"this cluster has already joined under the name {known!r}")
        if known == name:
            if its_identity not in (identity, None):
                raise JoinRefused(f"another cluster has already joined as {name!r}: choose another name")
            if cluster["metadata"].get("deletionTimestamp"):
                raise JoinRefused(f"cluster {name!r} is still leaving: wait until it has left")
            admitted = cluster
    return admitted


async def _refuse_taken(member: Client, account: str, instance_identity: str) -> None:
    for other in await _accounts(member):
        user = other["metadata"].get("annotations", {}).get(USED_BY)
        if other["metadata"]["name"] != account or user not in (instance_identity, None):
            name = other["metadata"]["name"].removeprefix("karmada-")
            raise JoinRefused(f"this cluster has already joined an instance, as {name!r}: it must leave that first")


async def _accounts(member: Client) -> list[Object]:
    """The service accounts that memberships have in the member: one each."""
    found = (await member.list(kinds.SERVICE_ACCOUNTS, namespace=NAMESPACE)).items
    return [item for item in found if item["metadata"]["name"] not in (IMPERSONATOR, "default")]


async def _store(instance: Client, secrets: dict[str, dict[str, str]], *, owner: Object | None) -> None:
    for name, data in secrets.items():
        secret = _object("v1", "Secret", name, NAMESPACE, type="Opaque", data=data)
        if owner is not None:
            reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
            secret["metadata"]["ownerReferences"] = [
                {"apiVersion": kinds.CLUSTERS.api_version, "kind": kinds.CLUSTERS.kind, **reference}
            ]
        await _apply(instance, secret)


async def _prepare_member(member: Client, account: str, instance_identity: str) -> None:
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
        holder = _object("v1", "ServiceAccount", name, NAMESPACE)
        holder["metadata"]["annotations"] = {USED_BY: instance_identity}
        objects += [holder, secret]
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
        "impersonatorSecretRef": {"namespace": NAMESPACE, "name": _impersonator_secret(wanted.name)},
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


async def _departure(instance: Client, name: str, *, by_force: bool) -> str | None:
    """What is left of a cluster that leaves, after doing what can be done about it now.

    Karmada deletes the execution namespace, and lets the Cluster go when that is gone. The Works in it are deleted here
    and not left to the namespace controller, which begins late and, finding finalizers, looks again later still. By
    force, the namespace goes without Karmada, a Work loses its finalizers as soon as it is being deleted (earlier they
    would be put back), and the Cluster when nothing else is left.
    """
    namespace, nothing = _execution_namespace(name), {"metadata": {"finalizers": None}}
    if by_force:
        await instance.delete(kinds.NAMESPACES, namespace, missing_ok=True)
    try:
        leaving = (await instance.get(kinds.NAMESPACES, namespace))["metadata"].get("deletionTimestamp")
    except NotFound:
        if by_force:
            await _patch_if_there(instance, kinds.CLUSTERS, name, nothing)
        return await _remains(instance, kinds.CLUSTERS, name)
    if leaving:
        async with aclosing(instance.pages(kinds.WORKS, namespace=namespace)) as pages:
            async for page in pages:
                for work in page.items:
                    if not work["metadata"].get("deletionTimestamp"):
                        await instance.delete(
                            kinds.WORKS, work["metadata"]["name"], namespace=namespace, missing_ok=True
                        )
                    elif by_force:
                        await _patch_if_there(instance, kinds.WORKS, work["metadata"]["name"], nothing, namespace)
    return f"its execution namespace {namespace} is still there"


async def _remains(client: Client, resource: Resource, name: str) -> str | None:
    """Nothing, or what keeps the object."""
    try:
        found = await client.get(resource, name)
    except NotFound:
        return None
    keepers = found["metadata"].get("finalizers") or found.get("spec", {}).get("finalizers") or []
    return f"{resource.kind} {name} is still there, finalizers: {', '.join(keepers) or 'none'}"


async def _patch_if_there(
    client: Client, resource: Resource, name: str, patch: Manifest, namespace: str | None = None
) -> None:
    try:
        await client.patch(resource, name, patch, namespace=namespace)
    except NotFound:
        return


async def _clean_member(member: Client, account: str, *, timeout: float) -> None:
    role = f"karmada-controller-manager:{account}"
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, role, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, role, missing_ok=True)
    await member.delete(kinds.SERVICE_ACCOUNTS, account, namespace=NAMESPACE, missing_ok=True)
    await member.delete(kinds.SECRETS, account, namespace=NAMESPACE, missing_ok=True)
    if await _accounts(member):
        return  # the rest serves another membership
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, IMPERSONATOR, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, IMPERSONATOR, missing_ok=True)
    await member.delete(kinds.NAMESPACES, NAMESPACE, missing_ok=True)

    async def gone() -> str | None:
        return await _remains(member, kinds.NAMESPACES, NAMESPACE)

    # A join that met the namespace on its way out would fail.
    await until(gone, what="the member being cleaned", timeout=timeout)


def _account(cluster: str) -> str:
    return f"karmada-{cluster}"


def _impersonator_secret(cluster: str) -> str:
    return f"{cluster}-impersonator"


def _execution_namespace(cluster: str) -> str:
    """Where Karmada keeps the Works of a member."""
    return f"karmada-es-{cluster}"


def _object(api_version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


async def _apply(client: Client, item: Manifest) -> Manifest:
    return await client.apply_object(item, field_manager=FIELD_MANAGER)
