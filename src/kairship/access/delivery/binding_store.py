"""Stores delivered bindings as custom resources in the global cluster.

Any replica stores them with server-side apply, any number of times. An object with the same sequence or a higher one
stays: the API server itself rejects a lower sequence, so replicas that receive at the same moment need no coordination.
A binding that global management no longer has is revoked first, and deleted when a later snapshot lacks it again. A
binding that the API server rejects for good is reported to the sender, its former state is revoked, and all others are
stored.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from kairship.access.bindings import Binding
from kairship.access.delivery.protocol import DeliveredBinding, Delivery, RejectedBinding, SnapshotPage
from kairship.kube import ApiError, BadRequest, Client, Conflict, Invalid, NotFound, TooLarge
from kairship.reconcile import resource_of
from kairship.resources import ACCESS_BINDINGS, AccessBindingSpec

FIELD_MANAGER = "kairship-ghippo-webhook"
TIMEOUT = 10.0
_CONCURRENCY = 8
_MAX_REASON = 500
_PERMANENT = (Invalid, BadRequest, TooLarge)
"""Errors that a retry cannot overcome."""

BINDING = resource_of(ACCESS_BINDINGS)


class StoredBindings(Protocol):
    """A cache of the stored bindings, which may lag a moment behind."""

    def stored(self, name: str) -> Binding | None: ...

    def all_stored(self) -> Iterable[Binding]: ...


class _Stored(msgspec.Struct, frozen=True):
    spec: AccessBindingSpec


class BindingStore:
    def __init__(self, client: Client, stored: StoredBindings) -> None:
        self._client = client
        self._stored = stored

    async def store(self, delivery: Delivery) -> Sequence[RejectedBinding]:
        """Stores a delivery, which is acknowledged only when this has returned; if it raises, the delivery comes again.

        Returns the bindings that can never be stored as they are. None of their rights is left in effect.
        """
        newer = [each for each in delivery.bindings if not self._has(each)]
        failures: list[BaseException] = []
        refused: list[RejectedBinding] = []
        for start in range(0, len(newer), _CONCURRENCY):
            batch = (self._store(each.name, each.spec) for each in newer[start : start + _CONCURRENCY])
            for outcome in await asyncio.gather(*batch, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    failures.append(outcome)
                elif outcome is not None:
                    refused.append(outcome)
        if failures:
            # Raised after the others: one that cannot be stored must not hold up the revocation of another.
            raise failures[0]
        if isinstance(delivery, SnapshotPage):
            await self._revoke_missing(delivery)
        return refused

    def _has(self, delivered: DeliveredBinding) -> bool:
        stored = self._stored.stored(delivered.name)
        return stored is not None and stored.spec.sequence >= delivered.spec.sequence

    async def _store(self, name: str, spec: AccessBindingSpec) -> RejectedBinding | None:
        try:
            await self._apply(name, spec)
        except (*_PERMANENT, Conflict) as error:
            stored = await self._read(name)
            if stored is not None and stored.sequence >= spec.sequence:
                return None  # the API server rejected the lower sequence
            if isinstance(error, Conflict):
                raise
            # The stored state is outdated and cannot be replaced, so its rights must end.
            await self._revoke(name, stored, sequence=spec.sequence if spec.revoked else spec.sequence - 1)
            return None if spec.revoked else RejectedBinding(name=name, sequence=spec.sequence, reason=_reason(error))
        return None

    async def _revoke(self, name: str, stored: AccessBindingSpec | None, *, sequence: int) -> None:
        if stored is None or stored.revoked:
            return
        later = max(stored.sequence + 1, sequence)
        try:
            await self._apply(name, msgspec.structs.replace(stored, revoked=True, sequence=later))
        except _PERMANENT:
            if await self._read(name) != stored:
                raise  # another replica changed it: the delivery comes again
            # It cannot even be marked as revoked, so it is deleted.
            await self._client.delete(BINDING, name, missing_ok=True, timeout=TIMEOUT)

    async def _read(self, name: str) -> AccessBindingSpec | None:
        try:
            return (await self._client.typed(_Stored).get(BINDING, name, timeout=TIMEOUT)).spec
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

    async def _revoke_missing(self, page: SnapshotPage) -> None:
        listed = {binding.name for binding in page.bindings}
        for binding in self._stored.all_stored():
            if binding.name in listed or not page.is_gone(binding.name, binding.spec.sequence):
                continue
            if binding.spec.revoked:
                await self._client.delete(BINDING, binding.name, missing_ok=True, timeout=TIMEOUT)
                continue
            stored = await self._read(binding.name)
            # The cache may not show yet that it is revoked already; revoking it once is enough.
            if stored is not None and page.is_gone(binding.name, stored.sequence):
                await self._revoke(binding.name, stored, sequence=page.sequence)


def _reason(error: ApiError) -> str:
    """The API server's own words, which may be passed on: a binding holds nothing secret."""
    causes = [f"{cause.field}: {cause.message}" for cause in error.causes] or [error.message or error.reason]
    text = "".join(c if c.isprintable() else " " for c in "; ".join(causes))
    return text[:_MAX_REASON]
