"""The receiver of bindings: global management delivers them here, signed, and they are stored as custom resources.

It has an authentication of its own, the signature, and is no part of the API. A delivery is acknowledged when all of it
is stored, but for what never can be, which the answer names; whatever else happens, the same one comes again. What
could not be genuine by its headers is not even read, and only a few are read at the same time: a stranger can send no
more than that into the memory.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

import structlog
from aiohttp import web

from kairship.access import BindingStore
from kairship.access.delivery import (
    LARGEST,
    Acknowledgement,
    Delivery,
    DeliveryRefusedError,
    Receiver,
    Refused,
    encode,
)
from kairship.apiserver.bodies import Bodies
from kairship.apiserver.limits import Limits
from kairship.apiserver.replies import GUARDED, error_response
from kairship.kube import KubeError
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import ApiError, Unauthenticated, Unavailable

READ_SECONDS = 10.0
STORE_SECONDS = 60.0
_AT_ONCE = 4

log = structlog.get_logger(__name__)


class Secrets(Protocol):
    def receiver(self) -> Receiver:
        """Verifies with the secrets that are good at this moment."""
        ...


class BindingWebhook:
    def __init__(self, store: BindingStore, secrets: Secrets) -> None:
        self._store = store
        self._secrets = secrets
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._bodies = Bodies(Limits(body=LARGEST))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        envelope = Envelope.around(request.headers, request.remote or "")
        try:
            refused = await self._take(request)
        except ApiError as error:
            log.warning("delivery refused", request_id=envelope.request_id, origin=envelope.origin, error=error.message)
            return error_response(error, envelope.request_id)
        headers = {**GUARDED, "X-Request-Id": envelope.request_id}
        if not refused:
            return web.Response(status=204, headers=headers)
        for each in refused:
            log.error("binding refused", request_id=envelope.request_id, binding=each.name, why=each.reason)
        headers["Content-Type"] = "application/json"
        return web.Response(body=encode(Acknowledgement(tuple(refused))), headers=headers)

    async def _take(self, request: web.BaseRequest) -> Sequence[Refused]:
        receiver = self._secrets.receiver()
        if self._room.locked():
            raise Unavailable("other deliveries are being stored; send it again", retry_after=1.0)
        async with self._room:
            try:
                receiver.look_at(request.headers, at=time.time())
                async with asyncio.timeout(READ_SECONDS), self._bodies.received(request) as body:
                    delivery = receiver.read(request.headers, body, at=time.time())
                async with asyncio.timeout(STORE_SECONDS):
                    return await self._keep(delivery)
            except DeliveryRefusedError as refused:
                raise Unauthenticated(str(refused)) from None
            except TimeoutError:
                raise Unavailable("this took too long; send it again", retry_after=1.0) from None

    async def _keep(self, delivery: Delivery) -> Sequence[Refused]:
        failures: list[str] = []
        refused: Sequence[Refused] = ()
        try:
            refused = await self._store.take(delivery)
        except* KubeError as failed:
            # Of which kind, and no more: what an API server says of an object may quote it.
            failures = sorted({type(each).__name__ for each in failed.exceptions})
        if failures:
            log.warning("bindings not stored", errors=failures)
            raise Unavailable("the bindings cannot be stored at this moment; send them again", retry_after=1.0)
        return refused
