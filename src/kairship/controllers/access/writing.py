"""Bringing one instance, and by it its members, to the RBAC that it should have.

What must go goes first, and only what is called like ours. Nothing is written that is there already. Each write asks
whether this process still leads: a right that was withdrawn must not come back from one that slept.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from kairship.controllers.access.desired import PREFIX, RESOURCES, Content, Desired, Place, manifest
from kairship.controllers.access.works import FINALIZER, is_as, work, work_name
from kairship.controllers.inside import Inside, OwnRole, OwnRoleBinding, OwnWork
from kairship.instances.membership import execution_namespace
from kairship.kube import Client, Conflict, NotFound, kinds
from kairship.reconcile import Context, Metadata

_AT_ONCE = 8
_TIMEOUT = 10.0

Act = Callable[[], Awaitable[object]]


class Written(msgspec.Struct, frozen=True):
    objects: int
    """How many had to be written or removed."""
    pending: Mapping[str, frozenset[str]]
    """By role, the members in which something of it is not in place yet."""


@dataclass
class _Compared:
    going: list[Act] = field(default_factory=list)
    coming: list[Act] = field(default_factory=list)
    pending: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


class RbacWriter:
    def __init__(self, context: Context, client: Client, inside: Inside, clusters: frozenset[str]) -> None:
        """`clusters` are the members that stay: what leaves takes its objects along."""
        self._context = context
        self._client = client
        self._inside = inside
        self._clusters = clusters

    async def bring_to(self, desired: Desired) -> Written:
        members = await self._compare_members(desired.members)
        going = [*self._going(desired.instance), *members.going]
        coming = [*self._coming(desired.instance), *members.coming]
        await self._all(going)
        await self._all(coming)
        pending = {role: frozenset(clusters) for role, clusters in members.pending.items()}
        return Written(objects=len(going) + len(coming), pending=pending)

    async def _compare_members(self, desired: Mapping[Place, Content]) -> _Compared:
        found = _Compared()
        wanted: set[tuple[str, str]] = set()
        for cluster in sorted(self._clusters):
            # Members and namespaces multiply: others want to run in between.
            await asyncio.sleep(0)
            namespace = execution_namespace(cluster)
            for place, content in desired.items():
                name = work_name(place)
                wanted.add((namespace, name))
                existing = self._inside.works.store.get(name, namespace=namespace)
                if existing is None or not _is_whole(existing, cluster, place, content):
                    found.coming.append(partial(self._apply_work, cluster, place, content))
                elif existing.is_applied:
                    continue
                found.pending[place.name].add(cluster)
        for each in self._inside.works.store:
            metadata = each.metadata
            if metadata.deletion_timestamp is None and (metadata.namespace, metadata.name) not in wanted:
                found.going.append(partial(self._delete_work, metadata))
        return found

    def _existing(self) -> Iterator[tuple[Place, Metadata, Content]]:
        for role in self._inside.roles.store:
            yield Place("ClusterRole", "", role.metadata.name), role.metadata, _role(role)
        for binding in self._inside.wide_bindings.store:
            yield Place("ClusterRoleBinding", "", binding.metadata.name), binding.metadata, _binding(binding)
        for binding in self._inside.bindings.store:
            meta = binding.metadata
            yield Place("RoleBinding", meta.namespace, meta.name), meta, _binding(binding)

    def _going(self, desired: Mapping[Place, Content]) -> Iterator[Act]:
        for place, metadata, content in self._existing():
            wanted = desired.get(place)
            # A role reference cannot be changed: a binding to another role is not ours, though it is called so.
            foreign = wanted is not None and wanted.get("roleRef") != content.get("roleRef")
            if place.name.startswith(PREFIX) and (wanted is None or foreign):
                yield partial(self._delete, place, metadata)

    def _coming(self, desired: Mapping[Place, Content]) -> Iterator[Act]:
        found = {place: content for place, _, content in self._existing()}
        # Roles before what refers to them.
        for place, content in sorted(desired.items()):
            if found.get(place) != content:
                yield partial(self._apply, place, content)

    async def _apply(self, place: Place, content: Content) -> None:
        self._check()
        await self._client.apply(
            RESOURCES[place.kind],
            manifest(place, content),
            field_manager=self._context.owner.name,
            namespace=place.namespace or None,
            timeout=_TIMEOUT,
        )

    async def _delete(self, place: Place, metadata: Metadata) -> None:
        self._check()
        await self._removed(
            self._client.delete(
                RESOURCES[place.kind],
                place.name,
                namespace=place.namespace or None,
                uid=metadata.uid,
                missing_ok=True,
                timeout=_TIMEOUT,
            )
        )

    async def _apply_work(self, cluster: str, place: Place, content: Content) -> None:
        self._check()
        try:
            await self._client.apply(
                kinds.WORKS, work(cluster, place, content), field_manager=self._context.owner.name, timeout=_TIMEOUT
            )
        except NotFound:
            return  # its namespace comes with the cluster, and the news of it

    async def _delete_work(self, metadata: Metadata) -> None:
        self._check()
        await self._removed(
            self._client.delete(
                kinds.WORKS,
                metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                missing_ok=True,
                timeout=_TIMEOUT,
            )
        )

    async def _removed(self, deletion: Awaitable[None]) -> None:
        try:
            await deletion
        except Conflict:
            return  # another one of this name: the next look is at that one

    def _check(self) -> None:
        if self._context.term is not None:
            self._context.term.check()

    async def _all(self, acts: list[Act]) -> None:
        for start in range(0, len(acts), _AT_ONCE):
            for result in await asyncio.gather(
                *(act() for act in acts[start : start + _AT_ONCE]), return_exceptions=True
            ):
                if isinstance(result, BaseException):
                    raise result


def _is_whole(found: OwnWork, cluster: str, place: Place, content: Content) -> bool:
    """Whether a Work is as it should be. One that is going is not, and cannot be made so."""
    if found.metadata.deletion_timestamp is not None:
        return True
    manifests = found.spec.workload.manifests or []
    return (
        FINALIZER in found.metadata.finalizers and len(manifests) == 1 and is_as(manifests[0], cluster, place, content)
    )


def _role(role: OwnRole) -> Content:
    return {"rules": role.rules or []}


def _binding(binding: OwnRoleBinding) -> Content:
    return {"roleRef": binding.role_ref, "subjects": binding.subjects or []}
