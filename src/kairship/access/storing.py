"""What a receiver of deliveries does with them: bindings are stored as custom resources in the global cluster.

Server-side apply, by any replica, any number of times. What is stored with the same sequence or a higher one stays: the
API server itself refuses to go back, so replicas that receive at the same moment need no agreement. What global
management does not know any more is withdrawn first, and removed when it says so again. What the API server refuses
for good is set aside: it is told to the sender, what was stored before it is withdrawn, and everything else goes on.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from kairship.access.bindings import Binding
from kairship.access.delivery import Delivered, Delivery, Everything, Refused
from kairship.kube import ApiError, BadRequest, Client, Conflict, Invalid, NotFound, TooLarge
from kairship.reconcile import resource_of
from kairship.resources import ACCESS_BINDINGS, AccessBindingSpec

FIELD_MANAGER = "kairship-ghippo-webhook"
TIMEOUT = 10.0
_AT_ONCE = 8
_LONGEST_REASON = 500
_FOR_GOOD = (Invalid, BadRequest, TooLarge)
"""What no repetition changes."""

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

    async def take(self, delivery: Delivery) -> Sequence[Refused]:
        """Acknowledge only when this has returned. Whatever it raises, the same delivery may come again.

        Returns what can never be stored as it is; there is no right of it left.
        """
        fresh = [each for each in delivery.bindings if not self._has(each)]
        failures: list[BaseException] = []
        refused: list[Refused] = []
        for start in range(0, len(fresh), _AT_ONCE):
            some = (self._store(each.name, each.spec) for each in fresh[start : start + _AT_ONCE])
            for outcome in await asyncio.gather(*some, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    failures.append(outcome)
                elif outcome is not None:
                    refused.append(outcome)
        if failures:
            # After the others: one that cannot be stored must not keep back that a right was withdrawn.
            raise failures[0]
        if isinstance(delivery, Everything):
            await self._withdraw_unknown(delivery)
        return refused

    def _has(self, delivered: Delivered) -> bool:
        stored = self._known.stored(delivered.name)
        return stored is not None and stored.spec.sequence >= delivered.spec.sequence

    async def _store(self, name: str, spec: AccessBindingSpec) -> Refused | None:
        try:
            await self._apply(name, spec)
        except (*_FOR_GOOD, Conflict) as error:
            stored = await self._read(name)
            if stored is not None and stored.sequence >= spec.sequence:
                return None  # it was the sequence that was refused
            if isinstance(error, Conflict):
                raise
            # What is stored is not what was given any more, so it must not go on to hold.
            await self._withdraw(name, stored, sequence=spec.sequence if spec.revoked else spec.sequence - 1)
            return None if spec.revoked else Refused(name=name, sequence=spec.sequence, reason=_told(error))
        return None

    async def _withdraw(self, name: str, stored: AccessBindingSpec | None, *, sequence: int) -> None:
        if stored is None or stored.revoked:
            return
        later = max(stored.sequence + 1, sequence)
        try:
            await self._apply(name, msgspec.structs.replace(stored, revoked=True, sequence=later))
        except _FOR_GOOD:
            if await self._read(name) != stored:
                raise  # somebody was faster: the delivery comes again
            # It cannot even be marked as ended: then it goes.
            await self._client.delete(BINDING, name, missing_ok=True, timeout=TIMEOUT)

    async def _read(self, name: str) -> AccessBindingSpec | None:
        try:
            return (await self._client.get(BINDING, name, as_type=_Stored, timeout=TIMEOUT)).spec
        except NotFound:
            return None

    async def _apply(self, name: str, spec: AccessBindingSpec) -> None:
        manifest: dict[str, Any] = {
            "apiVersion": ACCESS_BINDINGS.api_version,
            "kind": ACCESS_BINDINGS.kind,
            "metadata": {"name": name},
            "spec": msgspec.to_builtins(spec),
        }
        await self._client.apply(BINDING, manifest, field_manager=FIELD_MANAGER, force=True, timeout=TIMEOUT)

    async def _withdraw_unknown(self, page: Everything) -> None:
        listed = {binding.name for binding in page.bindings}
        for binding in self._known.all_stored():
            if binding.name in listed or not page.is_gone(binding.name, binding.spec.sequence):
                continue
            if binding.spec.revoked:
                await self._client.delete(BINDING, binding.name, missing_ok=True, timeout=TIMEOUT)
                continue
            stored = await self._read(binding.name)
            # Perhaps it is withdrawn already, and we have not heard of it: once is enough.
            if stored is not None and page.is_gone(binding.name, stored.sequence):
                await self._withdraw(binding.name, stored, sequence=page.sequence)


def _told(error: ApiError) -> str:
    """What the API server says of it. A binding holds nothing secret."""
    causes = [f"{cause.field}: {cause.message}" for cause in error.causes] or [error.message or error.reason]
    text = "".join(c if c.isprintable() else " " for c in "; ".join(causes))
    return text[:_LONGEST_REASON]
