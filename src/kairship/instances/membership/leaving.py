"""Taking a cluster out of an instance, and cleaning up in it.

`depart` and `clean` do what can be done now and say what is left: they are called again until nothing is. In good
order Karmada removes what it placed in the member. By force it does not: then its records lose their finalizers, and
what runs in the member stays there, because the member is dead or because its workloads shall be kept.
"""

import datetime as dt
from contextlib import aclosing

from kairship.instances.drivers.waiting import until
from kairship.instances.membership.account import IMPERSONATOR, NAMESPACE, account_of, accounts, role_of, secret_names
from kairship.instances.membership.manifests import Manifest
from kairship.instances.membership.works import execution_namespace, shown_again
from kairship.kube import Client, NotFound, Object, Resource, kinds

_NO_FINALIZERS: Manifest = {"metadata": {"finalizers": None}}
_SHOWN = "kairship.io/shown-again"
_OVERLOOKED = dt.timedelta(seconds=15)
_HELD = "karmada.io/cluster-controller"
_TAKEN_NOTE_OF = dt.timedelta(seconds=30)


async def depart(instance: Client, name: str, *, by_force: bool, uid: str | None = None) -> str | None:
    """Nothing, or what is left of the cluster in the instance after doing what can be done about it now.

    With a ``uid`` only that very Cluster is removed.
    """
    if not by_force and await _is_being_taken_note_of(instance, name):
        return f"Karmada is about to take note of {name}"
    await instance.delete(kinds.CLUSTERS, name, uid=uid, missing_ok=True)
    if missing := await _departure(instance, name, by_force=by_force):
        return missing
    # Owned by the Cluster and collected with it, unless the join was killed before it said so.
    for secret in secret_names(name):
        await instance.delete(kinds.SECRETS, secret, namespace=NAMESPACE, missing_ok=True)
    return None


async def disarm(member: Client, name: str) -> None:
    """Take Karmada's rights in the member away, so that it cannot remove the workloads that shall stay."""
    await member.delete(kinds.CLUSTER_ROLE_BINDINGS, role_of(name), missing_ok=True)

    async def disarmed() -> str | None:
        user = f"system:serviceaccount:{NAMESPACE}:{account_of(name)}"
        attributes = {"verb": "delete", "group": "apps", "resource": "deployments", "namespace": "default"}
        review = await member.create(
            kinds.SUBJECT_ACCESS_REVIEWS, {"spec": {"user": user, "resourceAttributes": attributes}}
        )
        return "it still has rights there" if review["status"]["allowed"] else None

    await until(disarmed, what="Karmada losing its rights in the member", timeout=10.0)


async def clean(member: Client, name: str) -> str | None:
    """Nothing, or what is left of Karmada's accounts in the member after doing what can be done about it now."""
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


async def _is_being_taken_note_of(instance: Client, name: str) -> bool:
    """Whether it joined a moment ago, and Karmada has no hold on it yet.

    It makes the execution namespace first. Deleted before that has happened, the Cluster would be gone at once, and the
    namespace come afterwards, to stay.
    """
    found = await _find(instance, kinds.CLUSTERS, name)
    if found is None or _HELD in (found["metadata"].get("finalizers") or ()):
        return False
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(found["metadata"]["creationTimestamp"])
    return dt.timedelta() <= age < _TAKEN_NOTE_OF


async def _departure(instance: Client, name: str, *, by_force: bool) -> str | None:
    """What is left of a cluster that leaves, after doing what can be done about it now.

    Karmada deletes the execution namespace, and lets the Cluster go when that is gone. The Works in it are deleted here
    and not left to the namespace controller, which begins late and, finding finalizers, looks again later still. By
    force, the namespace goes without Karmada, a Work loses its finalizers as soon as it is being deleted (earlier they
    would be put back), and the Cluster when nothing else is left.
    """
    namespace = execution_namespace(name)
    # Without its Cluster nobody in Karmada looks after it: that was deleted before Karmada had a hold on it.
    by_force = by_force or await _find(instance, kinds.CLUSTERS, name) is None
    if by_force:
        await instance.delete(kinds.NAMESPACES, namespace, missing_ok=True)
    found = await _find(instance, kinds.NAMESPACES, namespace)
    if found is None:
        if by_force:
            await _patch_if_there(instance, kinds.CLUSTERS, name, _NO_FINALIZERS)
        return await _remains(instance, kinds.CLUSTERS, name)
    if found["metadata"].get("deletionTimestamp"):
        async with aclosing(instance.pages(kinds.WORKS, namespace=namespace)) as pages:
            async for page in pages:
                for work in page.items:
                    if not work["metadata"].get("deletionTimestamp"):
                        await instance.delete(
                            kinds.WORKS, work["metadata"]["name"], namespace=namespace, missing_ok=True
                        )
                    elif patch := _NO_FINALIZERS if by_force else _shown_again(work):
                        await _patch_if_there(instance, kinds.WORKS, work["metadata"]["name"], patch, namespace)
    return f"its execution namespace {namespace} is still there"


def _shown_again(work: Object) -> Manifest | None:
    """What makes Karmada look at a Work that has been deleted for a while; None if it need not.

    v1.18.2 asks for the Cluster before it takes note of a Work. If its aggregated API server does not answer in that
    moment, as after a restart, the Work is dropped and waits for ever.
    """
    now, metadata = dt.datetime.now(dt.UTC), work["metadata"]
    last = max(metadata["deletionTimestamp"], (metadata.get("annotations") or {}).get(_SHOWN, ""))
    if now - dt.datetime.fromisoformat(last) < _OVERLOOKED:
        return None
    annotations = {_SHOWN: now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {"metadata": {"annotations": annotations}, **shown_again(suspended=work["spec"].get("suspendDispatching"))}


async def _remains(client: Client, resource: Resource, name: str) -> str | None:
    """Nothing, or what keeps the object."""
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


async def _patch_if_there(
    client: Client, resource: Resource, name: str, patch: Manifest, namespace: str | None = None
) -> None:
    try:
        await client.patch(resource, name, patch, namespace=namespace)
    except NotFound:
        return
