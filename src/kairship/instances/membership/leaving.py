"""Removes a cluster from an instance, and cleans up in the member.

`leave` and `clean_up` do what can be done now and return what is left: call them again until nothing is left. Normally
Karmada deletes the workloads that it placed in the member. By force it does not: its objects lose their finalizers, and
the workloads stay in the member, because the member is dead or because they are to be kept.
"""

import datetime as dt
from contextlib import aclosing

from kairship.instances.drivers.polling import until
from kairship.instances.membership.account import IMPERSONATOR, NAMESPACE, account_of, accounts, role_of, secret_names
from kairship.instances.membership.manifests import Manifest
from kairship.instances.membership.works import execution_namespace, requeue_patch
from kairship.kube import Client, NotFound, Object, Resource, kinds

_NO_FINALIZERS: Manifest = {"metadata": {"finalizers": None}}
_REQUEUED_AT = "kairship.io/shown-again"
_REQUEUE_AFTER = dt.timedelta(seconds=15)
_KARMADA_FINALIZER = "karmada.io/cluster-controller"
_TAKEN_UP_WITHIN = dt.timedelta(seconds=30)


async def leave(instance: Client, name: str, *, by_force: bool, uid: str | None = None) -> str | None:
    """Removes the Cluster from the instance as far as possible now. Returns what is left, or None.

    With ``uid`` a Cluster of the same name and another UID is not removed (`Conflict`).
    """
    if not by_force and await _is_not_taken_up_yet(instance, name):
        return f"Karmada has not taken up Cluster {name} yet"
    await instance.delete(kinds.CLUSTERS, name, uid=uid, missing_ok=True)
    if missing := await _advance_removal(instance, name, by_force=by_force):
        return missing
    # The Cluster owns them, so they are garbage collected; unless the join was killed before it set the owner.
    for secret in secret_names(name):
        await instance.delete(kinds.SECRETS, secret, namespace=NAMESPACE, missing_ok=True)
    return None


async def revoke_access(member: Client, name: str) -> None:
    """Revokes Karmada's permissions in the member, so that it cannot delete the workloads that are to be kept."""
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, role_of(name), missing_ok=True)

    async def revoked() -> str | None:
        user = f"system:serviceaccount:{NAMESPACE}:{account_of(name)}"
        attributes = {"verb": "delete", "group": "apps", "resource": "deployments", "namespace": "default"}
        review = await member.create(
            kinds.SUBJECT_ACCESS_REVIEWS, {"spec": {"user": user, "resourceAttributes": attributes}}
        )
        return "Karmada still has permissions there" if review["status"]["allowed"] else None

    await until(revoked, what="revoking Karmada's permissions in the member", timeout=10.0)


async def clean_up(member: Client, name: str) -> str | None:
    """Deletes Karmada's accounts in the member as far as possible now. Returns what is left, or None."""
    account, role = account_of(name), role_of(name)
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, role, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, role, missing_ok=True)
    await member.delete(kinds.SERVICE_ACCOUNTS, account, namespace=NAMESPACE, missing_ok=True)
    await member.delete(kinds.SECRETS, account, namespace=NAMESPACE, missing_ok=True)
    if await accounts(member):
        return None  # the rest serves another membership
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, IMPERSONATOR, missing_ok=True)
    await member.delete(kinds.CLUSTER_ROLES, IMPERSONATOR, missing_ok=True)
    await member.delete(kinds.NAMESPACES, NAMESPACE, missing_ok=True)
    return await _remains(member, kinds.NAMESPACES, NAMESPACE)


async def _is_not_taken_up_yet(instance: Client, name: str) -> bool:
    """Whether the Cluster joined a moment ago, and Karmada has not added its finalizer yet.

    Karmada creates the execution namespace before it adds the finalizer. A Cluster that is deleted in between would be
    gone at once, and the execution namespace would stay.
    """
    found = await _find(instance, kinds.CLUSTERS, name)
    if found is None or _KARMADA_FINALIZER in (found["metadata"].get("finalizers") or ()):
        return False
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(found["metadata"]["creationTimestamp"])
    return dt.timedelta() <= age < _TAKEN_UP_WITHIN


async def _advance_removal(instance: Client, name: str, *, by_force: bool) -> str | None:
    """Advances the removal of a Cluster as far as possible now. Returns what is left, or None.

    Karmada deletes the execution namespace, and removes its finalizer from the Cluster when that namespace is gone. The
    Works in it are deleted here and not left to the namespace controller, which starts late and retries later still
    when it finds finalizers. By force, the namespace is deleted without Karmada, a Work loses its finalizers as soon as
    it is being deleted (earlier Karmada would add them again), and the Cluster when nothing else is left.
    """
    namespace = execution_namespace(name)
    # Without its Cluster no controller of Karmada looks after the namespace: the Cluster was deleted before Karmada
    # had added its finalizer.
    by_force = by_force or await _find(instance, kinds.CLUSTERS, name) is None
    if by_force:
        await instance.delete(kinds.NAMESPACES, namespace, missing_ok=True)
    found = await _find(instance, kinds.NAMESPACES, namespace)
    if found is None:
        if by_force:
            await _patch_if_exists(instance, kinds.CLUSTERS, name, _NO_FINALIZERS)
        return await _remains(instance, kinds.CLUSTERS, name)
    if found["metadata"].get("deletionTimestamp"):
        async with aclosing(instance.pages(kinds.WORKS, namespace=namespace)) as pages:
            async for page in pages:
                for work in page.items:
                    if not work["metadata"].get("deletionTimestamp"):
                        await instance.delete(
                            kinds.WORKS, work["metadata"]["name"], namespace=namespace, missing_ok=True
                        )
                    elif patch := _NO_FINALIZERS if by_force else _requeue_patch(work):
                        await _patch_if_exists(instance, kinds.WORKS, work["metadata"]["name"], patch, namespace)
    return f"its execution namespace {namespace} is still there"


def _requeue_patch(work: Object) -> Manifest | None:
    """Returns a patch that requeues a Work which has been in deletion for a while; None if it is too early.

    Karmada v1.18.2 reads the Cluster before it queues a Work. If its aggregated API server does not answer in that
    moment, as after a restart, the Work is dropped and stays for ever.
    """
    now, metadata = dt.datetime.now(dt.UTC), work["metadata"]
    last = max(metadata["deletionTimestamp"], (metadata.get("annotations") or {}).get(_REQUEUED_AT, ""))
    if now - dt.datetime.fromisoformat(last) < _REQUEUE_AFTER:
        return None
    annotations = {_REQUEUED_AT: now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"metadata": {"annotations": annotations}, **requeue_patch(suspended=work["spec"].get("suspendDispatching"))}


async def _remains(client: Client, resource: Resource, name: str) -> str | None:
    """Returns what keeps the object, or None if it is gone."""
    found = await _find(client, resource, name)
    if found is None:
        return None
    keepers = found["metadata"].get("finalizers") or found.get("spec", {}).get("finalizers") or []
    return f"{resource.kind} {name} is still there, finalizers: {', '.join(keepers) or 'none'}"


async def _find(client: Client, resource: Resource, name: str) -> Object | None:
    try:
        return await client.get(resource, name)
    except NotFound:
        return None


async def _patch_if_exists(
    client: Client, resource: Resource, name: str, patch: Manifest, namespace: str | None = None
) -> None:
    try:
        await client.patch(resource, name, patch, namespace=namespace)
    except NotFound:
        return
