"""Joins a cluster to an instance: accounts in the member, and two Secrets and a ``Cluster`` in the instance.

Both sides are checked first: the instance for a cluster of the same identity or name, and the member for accounts that
another instance uses.
"""

import asyncio
import base64
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kairship.instances.membership import account
from kairship.instances.membership.account import IMPERSONATOR, NAMESPACE
from kairship.instances.membership.manifests import FIELD_MANAGER, Manifest, apply, manifest
from kairship.instances.membership.taints import Taint, tainted_from_the_start, write_taints
from kairship.kube import AlreadyExists, Client, Connection, NotFound, Object, kinds
from kairship.kube.cluster_identity import cluster_identity, is_karmada

ANNOUNCED = "kairship.io/announced"
_ANNOUNCING = "kairship-announcing"


class JoinRefused(Exception):  # noqa: N818 -- says what is the case
    """The cluster must not join; the message says why."""


class ControlPlaneRefused(JoinRefused):
    """What should join is the global cluster or a control plane of Karmada, and will never be a member."""


class StillLeaving(JoinRefused):
    """The cluster may join again once it has left."""


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """The desired Cluster in Karmada."""

    name: str
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class Joined(msgspec.Struct, frozen=True):
    """A member in the instance."""

    uid: str
    """The UID of the ``Cluster``: a Cluster of the same name and another UID is another membership."""


async def join(
    *,
    instance: Client,
    member: Client,
    reached_at: Connection,
    wanted: Join,
    edition: str = "",
    control_planes: Collection[str] = (),
) -> Joined:
    """Makes ``member`` a cluster of ``instance``. Karmada will connect to the server of ``reached_at``.

    ``control_planes`` are the identities of the plane's own control planes, which never join.
    With another ``edition`` Karmada gets new tokens, which are verified first; the earlier tokens stay valid until they
    are deleted.
    """
    member_identity, user = await asyncio.gather(cluster_identity(member), cluster_identity(instance))
    if member_identity in {user, *control_planes} or await is_karmada(member):
        # Karmada's account in it could do everything there, and so take over the platform or another instance.
        raise ControlPlaneRefused(
            "this is the global cluster or a control plane of Karmada: join a cluster that runs workloads instead"
        )
    known = await _admitted(instance, wanted.name, member_identity)
    await _refuse_taken(member, wanted.name, user)
    await account.apply_accounts(member, wanted.name, user, edition=edition)
    token, impersonator = await asyncio.gather(
        account.wait_for_token(member, account.account_of(wanted.name), edition=edition),
        account.wait_for_token(member, IMPERSONATOR, edition=edition),
    )
    await asyncio.gather(
        account.verify_token(reached_at, token, member_identity, addresses=member.addresses),
        account.verify_token(reached_at, impersonator, addresses=member.addresses),
    )

    await apply(instance, manifest("v1", "Namespace", NAMESPACE))
    authority = base64.b64encode(reached_at.ca or b"").decode()
    own, impersonating = account.secret_names(wanted.name)
    secrets = {own: {"caBundle": authority, "token": token}, impersonating: {"token": impersonator}}
    # Karmada reads the Secrets as soon as there is a Cluster, and only the Cluster's UID can make it their owner.
    await _store(instance, secrets, owner=known)
    if known is None and wanted.taints:
        # Without fields that may be removed later: the API server would regard both this write and the apply below as
        # their owners, and would keep them.
        await _create(instance, _cluster(Join(name=wanted.name), member_identity, reached_at), wanted.taints)
    cluster = await apply(instance, _cluster(wanted, member_identity, reached_at))
    await _store(instance, secrets, owner=cluster)
    await write_taints(instance, wanted.name, wanted.taints)
    return Joined(uid=cluster["metadata"]["uid"])


async def trigger_scheduling(instance: Client, name: str) -> None:
    """Changes the Cluster when it is ready, so that Karmada's scheduler considers it.

    The scheduler considers a cluster for waiting workloads when the Cluster changes, not when it is created. A Cluster
    does change when it becomes ready, but a scheduler that has lost its watch in that moment sees only a new Cluster.
    """
    with suppress(NotFound):
        await instance.patch(
            kinds.CLUSTERS, name, {"metadata": {"labels": {ANNOUNCED: "true"}}}, field_manager=_ANNOUNCING
        )


async def _admitted(instance: Client, name: str, member_identity: str) -> Object | None:
    """Returns the Cluster if the member has joined before. Raises `JoinRefused` if it must not join."""
    admitted = None
    for cluster in (await instance.list(kinds.CLUSTERS)).items:
        known, known_identity = cluster["metadata"]["name"], cluster["spec"].get("id")
        if known != name and known_identity == member_identity:
            raise JoinRefused(f"this cluster has already joined under the name {known!r}")
        if known == name:
            if known_identity not in (member_identity, None):
                raise JoinRefused(f"another cluster has already joined as {name!r}: choose another name")
            if cluster["metadata"].get("deletionTimestamp"):
                raise StillLeaving(f"cluster {name!r} is still leaving: wait until it has left")
            admitted = cluster
    return admitted


async def _refuse_taken(member: Client, name: str, instance_identity: str) -> None:
    for other in await account.accounts(member):
        taken = other["metadata"]["name"] != account.account_of(name)
        if taken or account.user_of(other) not in (instance_identity, None):
            its_name = other["metadata"]["name"].removeprefix("karmada-")
            raise JoinRefused(
                f"this cluster has already joined an instance, as {its_name!r}: it must leave that instance first"
            )


async def _store(instance: Client, secrets: dict[str, dict[str, str]], *, owner: Object | None) -> None:
    for name, data in secrets.items():
        secret = manifest("v1", "Secret", name, NAMESPACE, type="Opaque", data=data)
        if owner is not None:
            reference = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
            secret["metadata"]["ownerReferences"] = [
                {"apiVersion": kinds.CLUSTERS.api_version, "kind": kinds.CLUSTERS.kind, **reference}
            ]
        await apply(instance, secret)


async def _create(instance: Client, described: Manifest, taints: Sequence[Taint]) -> None:
    """Creates the Cluster with its taints: without them, workloads could be scheduled to it in the meantime."""
    tainted = tainted_from_the_start(described, taints)
    with suppress(AlreadyExists):
        await instance.create(kinds.CLUSTERS, tainted, field_manager=FIELD_MANAGER)


def _cluster(wanted: Join, member_identity: str, reached_at: Connection) -> Manifest:
    own, impersonating = account.secret_names(wanted.name)
    spec: dict[str, Any] = {
        "syncMode": "Push",
        "id": member_identity,
        "apiEndpoint": reached_at.server,
        "secretRef": {"namespace": NAMESPACE, "name": own},
        "impersonatorSecretRef": {"namespace": NAMESPACE, "name": impersonating},
    }
    if wanted.provider:
        spec["provider"] = wanted.provider
    if wanted.region:
        spec["region"] = wanted.region
    if wanted.zones:
        spec["zones"] = list(wanted.zones)
    cluster = manifest("cluster.karmada.io/v1alpha1", "Cluster", wanted.name, spec=spec)
    cluster["metadata"]["labels"] = dict(wanted.labels)
    return cluster
