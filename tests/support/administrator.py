"""The right of the administrator in a cluster to which nobody delivers bindings."""

from typing import Any

import msgspec

from kairship.access import Role, permissions_of
from kairship.ghippo import users
from kairship.kube import Client, NotFound
from kairship.reconcile import resource_of
from kairship.resources import ACCESS_BINDINGS, AccessBindingSpec, ScopeLevel, SubjectKind
from kairship.resources.access_binding import Origin, OriginKind, Scope, Subject
from kairship.resources.access_binding import Role as BoundRole

NAME = "administrator"
FIELD_MANAGER = "kairship"
_BINDING = resource_of(ACCESS_BINDINGS)


class _Stored(msgspec.Struct, frozen=True):
    spec: AccessBindingSpec


async def ensure(client: Client) -> None:
    """Idempotent. What somebody has withdrawn since stays withdrawn."""
    wanted = AccessBindingSpec(
        subject=Subject(kind=SubjectKind.USER, id=users.ADMIN),
        role=BoundRole(id=Role.PLATFORM_ADMIN.id, display_name=Role.PLATFORM_ADMIN.title),
        permissions=tuple(sorted(permissions_of(Role.PLATFORM_ADMIN))),
        scope=Scope(level=ScopeLevel.PLATFORM),
        origin=Origin(kind=OriginKind.PLATFORM),
        sequence=1,
    )
    try:
        stored = (await client.get(_BINDING, NAME, as_type=_Stored)).spec
    except NotFound:
        stored = None
    if stored is not None:
        if stored.revoked or stored.permissions == wanted.permissions:
            return
        wanted = msgspec.structs.replace(wanted, sequence=stored.sequence + 1)
    manifest: dict[str, Any] = {"metadata": {"name": NAME}, "spec": msgspec.to_builtins(wanted)}
    await client.apply(_BINDING, manifest, field_manager=FIELD_MANAGER)
