"""What a receiver of deliveries does with them: bindings are stored as custom resources in the global cluster.

Server-side apply, by any replica, any number of times. What is stored with the same sequence or a higher one stays: the
API server itself refuses to go back, so replicas that receive at the same moment need no agreement. What global
management does not know any more is withdrawn first, and removed when it says so again.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from kairship.access.bindings import Binding
from kairship.access.delivery import Delivered, Delivery, Everything
from kairship.kube import Client, Conflict, Invalid
from kairship.reconcile import resource_of
from kairship.resources import ACCESS_BINDINGS, AccessBindingSpec

FIELD_MANAGER = "kairship-ghippo-webhook"
TIMEOUT = 10.0
_AT_ONCE = 8

BINDING = resource_of(ACCESS_BINDINGS)


class Known(Protocol):
    """The bindings that are stored, as far as they are known here: perhaps a moment old."""

    def stored(self, name: str) -> Binding | None: ...

    def all_stored(self) -> Iterable[Binding]: ...


class _Stored(msgspec.Struct, frozen=True):
    spec: AccessBindingSpec


class BindingStore:
    def __init__(self, client: Client, known: Known) -> None:
        self._client = client
        self._known = known

    async def take(self, delivery: Delivery) -> None:
        """Acknowledge only when this has returned. Whatever it raises, the same delivery may come again."""
        fresh = [each for each in delivery.bindings if not self._has(each)]
        failures: list[BaseException] = []
        for start in range(0, len(fresh), _AT_ONCE):
            some = (self._apply(each.name, each.spec) for each in fresh[start : start + _AT_ONCE])
            failures += [each for each in await asyncio.gather(*some, return_exceptions=True) if each is not None]
        if failures:
            # After the others: one that cannot be stored must not keep back that a right was withdrawn.
            raise failures[0]
        if isinstance(delivery, Everything):
            await self._withdraw_unknown(delivery)

    def _has(self, delivered: Delivered) -> bool:
        stored = self._known.stored(delivered.name)
        return stored is not None and stored.spec.sequence >= delivered.spec.sequence

    async def _apply(self, name: str, spec: AccessBindingSpec) -> None:
        manifest: dict[str, Any] = {
            "apiVersion": ACCESS_BINDINGS.api_version,
            "kind": ACCESS_BINDINGS.kind,
            "metadata": {"name": name},
            "spec": msgspec.to_builtins(spec),
        }
        try:
            await self._client.apply(BINDING, manifest, field_manager=FIELD_MANAGER, force=True, timeout=TIMEOUT)
        except (Invalid, Conflict):
            stored = await self._client.get(BINDING, name, as_type=_Stored, timeout=TIMEOUT)
            if stored.spec.sequence < spec.sequence:
                raise  # it is not the sequence that was refused

    async def _withdraw_unknown(self, page: Everything) -> None:
        listed = {binding.name for binding in page.bindings}
        for binding in self._known.all_stored():
            if binding.name in listed or not page.is_gone(binding.name, binding.spec.sequence):
                continue
            if binding.spec.revoked:
                await self._client.delete(BINDING, binding.name, missing_ok=True, timeout=TIMEOUT)
                continue
            stored = await self._client.get(BINDING, binding.name, as_type=_Stored, timeout=TIMEOUT)
            # Perhaps it is withdrawn already, and we have not heard of it: once is enough.
            if not stored.spec.revoked and page.is_gone(binding.name, stored.spec.sequence):
                sequence = max(stored.spec.sequence + 1, page.sequence)
                withdrawn = msgspec.structs.replace(stored.spec, revoked=True, sequence=sequence)
                await self._apply(binding.name, withdrawn)
