"""Brings the admission policies of one instance to the desired state, and says whether they are in effect.

No right of a person is written into an instance before its policies hold there: Karmada would carry out what the person
writes with all its own rights. Rights are withdrawn in any case.
"""

from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

from kairship.access.catalogue.kinds import is_custom
from kairship.controllers.instance_cache import InstanceCache, OwnPolicy
from kairship.instances import admission
from kairship.kube import Client, Conflict, Resource, kinds
from kairship.reconcile import Context, Reflector

_TIMEOUT = 10.0


class AdmissionWriter:
    def __init__(self) -> None:
        # The instances whose API server was seen to enforce the policies, for as long as their caches last.
        self._enforced: WeakSet[InstanceCache] = WeakSet()

    async def enforce(self, context: Context, client: Client, cache: InstanceCache) -> bool:
        """Whether the instance enforces all policies. If not, call it again in a moment."""
        outdated = list(_outdated(cache))
        surplus = list(_surplus(cache))
        if outdated or surplus:
            self._enforced.discard(cache)
        elif cache in self._enforced:
            return True
        for resource, manifest in outdated:
            _check(context)
            await client.apply(resource, manifest, field_manager=context.owner.name, timeout=_TIMEOUT)
        for resource, policy in surplus:
            _check(context)
            await _delete(client, resource, policy)
        if outdated or surplus:
            context.log.info("the admission policies of an instance were updated", objects=len(outdated) + len(surplus))
        if not await admission.probe(client, timeout=_TIMEOUT):
            return False
        if not outdated and not surplus:
            # Otherwise the cache has to show first that what was written is what is stored.
            self._enforced.add(cache)
        return True


def _outdated(cache: InstanceCache) -> Iterator[tuple[Resource, dict[str, Any]]]:
    """What is missing or different, in the order in which it has to be written."""
    served = ((each.spec.group, each.spec.names.kind, each.spec.names.plural) for each in cache.definitions.store)
    # A definition in a group of Kubernetes or of Karmada must not change what the kinds of that group are taken for.
    plurals = admission.irregular_plurals(each for each in served if is_custom(each[0]))
    for resource, manifest in admission.manifests(plurals):
        found = _reflector(cache, resource).store.get(manifest["metadata"]["name"])
        if found is None or found.spec != manifest["spec"]:
            yield resource, manifest


def _surplus(cache: InstanceCache) -> Iterator[tuple[Resource, OwnPolicy]]:
    """What has our label and no purpose any more: bindings first, so that no binding refers to a missing policy."""
    names = {policy.name for policy in admission.POLICIES}
    for resource in (kinds.VALIDATING_ADMISSION_POLICY_BINDINGS, kinds.VALIDATING_ADMISSION_POLICIES):
        for found in _reflector(cache, resource).store:
            if found.metadata.name not in names and found.metadata.deletion_timestamp is None:
                yield resource, found


def _reflector(cache: InstanceCache, resource: Resource) -> Reflector[OwnPolicy]:
    return cache.policies if resource is kinds.VALIDATING_ADMISSION_POLICIES else cache.policy_bindings


async def _delete(client: Client, resource: Resource, policy: OwnPolicy) -> None:
    try:
        await client.delete(resource, policy.metadata.name, uid=policy.metadata.uid, missing_ok=True, timeout=_TIMEOUT)
    except Conflict:
        return  # another object of this name exists since; the next reconcile compares it


def _check(context: Context) -> None:
    if context.term is not None:
        context.term.check()
