"""Making a cluster a member of an instance: its accounts over there, two Secrets and a ``Cluster`` here.

Both sides are asked first: the instance for clusters of the same identity or name, the member for accounts that it gave
to others.
"""

import asyncio
import base64
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kairship.instances.membership import account
from kairship.instances.membership.account import IMPERSONATOR, NAMESPACE, identity
from kairship.instances.membership.manifests import FIELD_MANAGER, Manifest, apply, manifest
from kairship.instances.membership.taints import Taint, tainted_from_the_start, write_taints
from kairship.kube import AlreadyExists, Client, Connection, NotFound, Object, kinds

ANNOUNCED = "kairship.io/announced"
_ANNOUNCING = "kairship-announcing"


class JoinRefused(Exception):  # noqa: N818 -- says what is the case
    """The cluster must not join; the message says why."""


class StillLeaving(JoinRefused):
    """It may, once it has left."""


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as Karmada shall know it."""

    name: str
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class Joined(msgspec.Struct, frozen=True):
    """A member as the instance knows it now."""

    uid: str
    """Of the ``Cluster``: another one of the same name is another membership."""


async def join(*, instance: Client, member: Client, reached_at: Connection, wanted: Join, edition: str = "") -> Joined:
    """Make ``member``, which Karmada reaches at that connection's address, a cluster of ``instance``.

    With another ``edition`` Karmada gets other tokens, verified first; those before stay valid until they are retired.
    """
    its_identity, user = await asyncio.gather(identity(member), identity(instance))
    known = await _admitted(instance, wanted.name, its_identity)
    await _refuse_taken(member, wanted.name, user)
    await account.prepare(member, wanted.name, user, edition=edition)
    token, impersonator = await asyncio.gather(
        account.token(member, account.account_of(wanted.name), edition=edition),
        account.token(member, IMPERSONATOR, edition=edition),
    )
    await asyncio.gather(
        account.verify(reached_at, token, its_identity, addresses=member.addresses),
        account.verify(reached_at, impersonator, addresses=member.addresses),
    )

    await apply(instance, manifest("v1", "Namespace", NAMESPACE))
    authority = base64.b64encode(reached_at.ca or b"").decode()
    own, impersonating = account.secret_names(wanted.name)
    secrets = {own: {"caBundle": authority, "token": token}, impersonating: {"token": impersonator}}
    # Karmada reads the Secrets as soon as there is a Cluster, and only the Cluster's UID can make it their owner.
    await _store(instance, secrets, owner=known)
    if known is None and wanted.taints:
        # What can be removed later is not created: the API server would take two writers for its owners.
        await _create(instance, _cluster(Join(name=wanted.name), its_identity, reached_at), wanted.taints)
    cluster = await apply(instance, _cluster(wanted, its_identity, reached_at))
    await _store(instance, secrets, owner=cluster)
    await write_taints(instance, wanted.name, wanted.taints)
    return Joined(uid=cluster["metadata"]["uid"])


async def announce(instance: Client, name: str) -> None:
    """Change the Cluster, now that it can be used.

    Karmada's scheduler looks for what could be placed in a cluster when that changes, and not when it comes. It does
    change when it becomes ready, but whoever lost contact in that moment only sees it come.
    """
    with suppress(NotFound):
        await instance.patch(
            kinds.CLUSTERS, name, {"metadata": {"labels": {ANNOUNCED: "true"}}}, field_manager=_ANNOUNCING
        )


async def _admitted(instance: Client, name: str, its_identity: str) -> Object | None:
    """The Cluster as it is if it has joined before. Raises if it must not join."""
    admitted = None
    for cluster in (await instance.list(kinds.CLUSTERS)).items:
        known, known_identity = cluster["metadata"]["name"], cluster["spec"].get("id")
        if known != name and known_identity == its_identity:
            raise JoinRefused(f"this cluster has already joined under the name {known!r}")
        if known == name:
            if known_identity not in (its_identity, None):
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
            raise JoinRefused(f"this cluster has already joined an instance, as {its_name!r}: it must leave that first")


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
    """With its taints from the first moment: what they keep away would be placed there in the meantime."""
    tainted = tainted_from_the_start(described, taints)
    with suppress(AlreadyExists):
        await instance.create(kinds.CLUSTERS, tainted, field_manager=FIELD_MANAGER)


def _cluster(wanted: Join, its_identity: str, reached_at: Connection) -> Manifest:
    own, impersonating = account.secret_names(wanted.name)
    spec: dict[str, Any] = {
        "syncMode": "Push",
        "id": its_identity,
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
