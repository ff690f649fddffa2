"""Bindings as deliveries of global management store them."""

import itertools
from typing import Any

from kairship.access import Role, permissions_of
from kairship.access.delivery.binding_store import BINDING
from support.managed import ManagedInstance

_sequence = itertools.count(1)


def name_of(who: str) -> str:
    return f"{who.removeprefix('%')}-binding"


async def bind(
    instance: ManagedInstance,
    who: str,
    role: Role,
    *,
    namespace: str = "",
    uid: str = "",
    revoked: bool = False,
    everywhere: bool = False,
) -> None:
    """Stores a binding as a delivery of global management does. `who` is a user, or a group if it begins with `%`."""
    scope: dict[str, Any] = {"level": "Instance", "instance": instance.name, "instanceUid": uid or instance.uid}
    if everywhere:
        scope = {"level": "Platform"}
    if namespace:
        scope |= {"level": "Namespace", "namespace": namespace}
    subject = {"kind": "Group" if who.startswith("%") else "User", "id": who.removeprefix("%")}
    spec = {
        "subject": subject,
        "role": {"id": role.id},
        "permissions": sorted(permissions_of(role)),
        "scope": scope,
        "origin": {"kind": "Resource"},
        "sequence": next(_sequence),
        "revoked": revoked,
    }
    await instance.client.apply(BINDING, {"metadata": {"name": name_of(who)}, "spec": spec}, field_manager="tests")
