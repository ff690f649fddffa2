"""Brings the RBAC of one instance and, through Karmada, of its members to the desired state.

Objects are deleted first, and only those with our name prefix. Objects that are as desired are not written. Each write
checks whether this process still leads: a suspended former leader must not bring back a right that was withdrawn.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from kairship.controllers.access.desired import PREFIX, RESOURCES, Content, DesiredRbac, ObjectKey, manifest
from kairship.controllers.access.works import FINALIZER, matches, work, work_name
from kairship.controllers.instance_cache import InstanceCache, OwnRole, OwnRoleBinding, OwnWork
from kairship.instances.membership import execution_namespace
from kairship.kube import Client, Conflict, NotFound, kinds
from kairship.reconcile import Context, Metadata

_AT_ONCE = 8
_TIMEOUT = 10.0

Write = Callable[[], Awaitable[object]]


class Written(msgspec.Struct, frozen=True):
    """What `RbacWriter.apply` did."""

    objects: int
    """How many objects were written or deleted."""
    pending: Mapping[str, frozenset[str]]
    """By role, the members that do not have all objects of that role yet."""


@dataclass
class _Comparison:
    deletions: list[Write] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    pending: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


class RbacWriter:
    def __init__(self, context: Context, client: Client, cache: InstanceCache, clusters: frozenset[str]) -> None:
        """`clusters` are the members that are not being removed from Karmada."""
        self._context = context
        self._client = client
        self._cache = cache
        self._clusters = clusters

    async def apply(self, desired: DesiredRbac, *, grant: bool) -> Written:
        """Withdraws what is not desired in any case, and writes what is desired with `grant`."""
        members = await self._compare_members(desired.members)
        deletions = [*self._deletions(desired.instance), *members.deletions]
        writes = [*self._writes(desired.instance), *members.writes] if grant else []
        await self._run(deletions)
        await self._run(writes)
        pending = {role: frozenset(clusters) for role, clusters in members.pending.items()}
        return Written(objects=len(deletions) + len(writes), pending=pending)

    async def _compare_members(self, desired: Mapping[ObjectKey, Content]) -> _Comparison:
        found = _Comparison()
        wanted: set[tuple[str, str]] = set()
        for cluster in sorted(self._clusters):
            # There are members times namespaces of them: other tasks must run in between.
            await asyncio.sleep(0)
            namespace = execution_namespace(cluster)
            for key, content in desired.items():
                name = work_name(key)
                wanted.add((namespace, name))
                existing = self._cache.works.store.get(name, namespace=namespace)
                if existing is None or not _is_settled(existing, cluster, key, content):
                    found.writes.append(partial(self._apply_work, cluster, key, content))
                elif existing.is_applied and existing.metadata.deletion_timestamp is None:
                    continue
                found.pending[key.name].add(cluster)
        for each in self._cache.works.store:
            metadata = each.metadata
            if metadata.deletion_timestamp is None and (metadata.namespace, metadata.name) not in wanted:
                found.deletions.append(partial(self._delete_work, metadata))
        return found

    def _existing(self) -> Iterator[tuple[ObjectKey, Metadata, Content]]:
        for role in self._cache.roles.store:
            yield ObjectKey("ClusterRole", "", role.metadata.name), role.metadata, _role(role)
        for binding in self._cache.wide_bindings.store:
            yield ObjectKey("ClusterRoleBinding", "", binding.metadata.name), binding.metadata, _binding(binding)
        for binding in self._cache.bindings.store:
            meta = binding.metadata
            yield ObjectKey("RoleBinding", meta.namespace, meta.name), meta, _binding(binding)

    def _deletions(self, desired: Mapping[ObjectKey, Content]) -> Iterator[Write]:
        for key, metadata, content in self._existing():
            wanted = desired.get(key)
            # A roleRef is immutable: a binding with our name and another role is not ours and has to be replaced.
            foreign = wanted is not None and wanted.get("roleRef") != content.get("roleRef")
            if key.name.startswith(PREFIX) and (wanted is None or foreign):
                yield partial(self._delete, key, metadata)

    def _writes(self, desired: Mapping[ObjectKey, Content]) -> Iterator[Write]:
        found = {key: content for key, _, content in self._existing()}
        # In this order roles come before the bindings that refer to them.
        for key, content in sorted(desired.items()):
            if found.get(key) != content:
                yield partial(self._apply, key, content)

    async def _apply(self, key: ObjectKey, content: Content) -> None:
        self._check()
        await self._client.apply(
            RESOURCES[key.kind],
            manifest(key, content),
            field_manager=self._context.owner.name,
            namespace=key.namespace or None,
            timeout=_TIMEOUT,
        )

    async def _delete(self, key: ObjectKey, metadata: Metadata) -> None:
        self._check()
        await self._ignore_replaced(
            self._client.delete(
                RESOURCES[key.kind],
                key.name,
                namespace=key.namespace or None,
                uid=metadata.uid,
                missing_ok=True,
                timeout=_TIMEOUT,
            )
        )

    async def _apply_work(self, cluster: str, key: ObjectKey, content: Content) -> None:
        self._check()
        try:
            await self._client.apply(
                kinds.WORKS, work(cluster, key, content), field_manager=self._context.owner.name, timeout=_TIMEOUT
            )
        except NotFound:
            return  # Karmada creates the namespace with the cluster; that enqueues the instance again

    async def _delete_work(self, metadata: Metadata) -> None:
        self._check()
        await self._ignore_replaced(
            self._client.delete(
                kinds.WORKS,
                metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                missing_ok=True,
                timeout=_TIMEOUT,
            )
        )

    async def _ignore_replaced(self, deletion: Awaitable[None]) -> None:
        try:
            await deletion
        except Conflict:
            return  # another object of this name exists since; the next reconcile compares it

    def _check(self) -> None:
        if self._context.term is not None:
            self._context.term.check()

    async def _run(self, writes: list[Write]) -> None:
        for start in range(0, len(writes), _AT_ONCE):
            for result in await asyncio.gather(
                *(write() for write in writes[start : start + _AT_ONCE]), return_exceptions=True
            ):
                if isinstance(result, BaseException):
                    raise result


def _is_settled(found: OwnWork, cluster: str, key: ObjectKey, content: Content) -> bool:
    """Whether a Work is as desired, or cannot be changed any more because it is being deleted."""
    if found.metadata.deletion_timestamp is not None:
        return True
    manifests = found.spec.workload.manifests or []
    return (
        FINALIZER in found.metadata.finalizers and len(manifests) == 1 and matches(manifests[0], cluster, key, content)
    )


def _role(role: OwnRole) -> Content:
    return {"rules": role.rules or []}


def _binding(binding: OwnRoleBinding) -> Content:
    return {"roleRef": binding.role_ref, "subjects": binding.subjects or []}
