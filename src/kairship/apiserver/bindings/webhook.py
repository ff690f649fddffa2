"""The webhook by which global management delivers bindings, signed; they are stored as custom resources.

It is outside of the API and has an authentication of its own, the signature. A delivery is acknowledged when all of its
bindings are stored, except those that can never be, which the reply names; after any other failure the same delivery is
sent again. A request whose headers cannot be genuine is not read, and only a few are read at the same time, so that an
unknown client can fill little memory.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

import structlog
from aiohttp import web

from kairship.access import BindingStore
from kairship.access.delivery.protocol import (
    MAX_BYTES,
    Acknowledgement,
    Delivery,
    DeliveryRefusedError,
    Receiver,
    RejectedBinding,
    encode,
)
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.request_bodies import RequestBodies
from kairship.apiserver.http.replies import SECURITY_HEADERS, error_response
from kairship.kube import KubeError
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import ApiError, Unauthenticated, Unavailable

READ_SECONDS = 10.0
STORE_SECONDS = 60.0
_CONCURRENT_DELIVERIES = 4

log = structlog.get_logger(__name__)


class Secrets(Protocol):
    def receiver(self) -> Receiver:
        """Returns a verifier with the secrets that are valid at this moment."""
        ...


class BindingWebhook:
    def __init__(self, store: BindingStore, secrets: Secrets) -> None:
        self._store = store
        self._secrets = secrets
        self._slots = asyncio.Semaphore(_CONCURRENT_DELIVERIES)
        self._bodies = RequestBodies(Limits(body=MAX_BYTES))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        envelope = Envelope.around(request.headers, request.remote or "")
        try:
            refused = await self._receive(request)
        except ApiError as error:
            log.warning("delivery refused", request_id=envelope.request_id, origin=envelope.origin, error=error.message)
            return error_response(error, envelope.request_id)
        headers = {**SECURITY_HEADERS, "X-Request-Id": envelope.request_id}
        if not refused:
            return web.Response(status=204, headers=headers)
        for each in refused:
            log.error("binding refused", request_id=envelope.request_id, binding=each.name, why=each.reason)
        headers["Content-Type"] = "application/json"
        return web.Response(body=encode(Acknowledgement(tuple(refused))), headers=headers)

    async def _receive(self, request: web.BaseRequest) -> Sequence[RejectedBinding]:
        receiver = self._secrets.receiver()
        if self._slots.locked():
            raise Unavailable("other deliveries are being stored; send this one again", retry_after=1.0)
        async with self._slots:
            try:
                receiver.check_headers(request.headers, at=time.time())
                async with asyncio.timeout(READ_SECONDS), self._bodies.received(request) as body:
                    delivery = receiver.read(request.headers, body, at=time.time())
                async with asyncio.timeout(STORE_SECONDS):
                    return await self._store_bindings(delivery)
            except DeliveryRefusedError as refused:
                raise Unauthenticated(str(refused)) from None
            except TimeoutError:
                raise Unavailable("the delivery took too long; send it again", retry_after=1.0) from None

    async def _store_bindings(self, delivery: Delivery) -> Sequence[RejectedBinding]:
        failures: list[str] = []
        refused: Sequence[RejectedBinding] = ()
        try:
            refused = await self._store.store(delivery)
        except* KubeError as failed:
            # Only the kinds of the errors: an API server's message may quote the object.
            failures = sorted({type(each).__name__ for each in failed.exceptions})
        if failures:
            log.warning("bindings not stored", errors=failures)
            raise Unavailable("the bindings cannot be stored at this moment; send them again", retry_after=1.0)
        return refused
