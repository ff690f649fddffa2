"""gRPC's health service, for load balancers and probes. It needs no authentication and reveals nothing else."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import grpc

from kairship.apiserver.grpc.server import Context, Handler
from kairship.gen.grpc.health.v1.health_pb import (
    HealthCheckRequest,
    HealthCheckResponse,
    HealthListRequest,
    HealthListResponse,
)
from kairship.process.change_notifier import ChangeNotifier

MOST_WATCHES = 100
_Status = HealthCheckResponse.ServingStatus


class Health:
    """Every service is as healthy as the server."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = {"", *services}
        self._status = _Status.NOT_SERVING
        self._changes = ChangeNotifier()
        self._watches = 0
        self._stopping = False

    def serve(self) -> None:
        self._set(_Status.SERVING)

    def stop(self) -> None:
        """Changes the health to not serving, and ends the watches after they have sent it."""
        self._stopping = True
        self._set(_Status.NOT_SERVING)

    def _set(self, status: HealthCheckResponse.ServingStatus) -> None:
        self._status = status
        self._changes.notify()

    def handlers(self) -> Mapping[str, Handler]:
        def encode(message: Any) -> bytes:
            encoded: bytes = message.to_binary()
            return encoded

        return {
            "/grpc.health.v1.Health/Check": grpc.unary_unary_rpc_method_handler(
                self._check, HealthCheckRequest.from_binary, encode
            ),
            "/grpc.health.v1.Health/List": grpc.unary_unary_rpc_method_handler(
                self._list, HealthListRequest.from_binary, encode
            ),
            "/grpc.health.v1.Health/Watch": grpc.unary_stream_rpc_method_handler(
                self._watch, HealthCheckRequest.from_binary, encode
            ),
        }

    async def _check(self, request: HealthCheckRequest, context: Context) -> HealthCheckResponse:
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "this server does not have that service")
        return HealthCheckResponse(status=self._status)

    async def _list(self, request: HealthListRequest, context: Context) -> HealthListResponse:
        return HealthListResponse(
            statuses={service: HealthCheckResponse(status=self._status) for service in self._services}
        )

    async def _watch(self, request: HealthCheckRequest, context: Context) -> AsyncIterator[HealthCheckResponse]:
        if self._watches >= MOST_WATCHES:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many watches are open; call Check instead")
        self._watches += 1
        try:
            while True:
                changed = self._changes.next_change()
                known = request.service in self._services
                yield HealthCheckResponse(status=self._status if known else _Status.SERVICE_UNKNOWN)
                if self._stopping:
                    return
                await changed.wait()
        finally:
            self._watches -= 1
