"""The entrance of one worker: the REST server and the gRPC server in front of one chain, and the native proxy.

It serves for as long as its context lasts, and stops in order: first its health changes to not serving, then open
streams are ended, then running requests have time to finish, and only then are connections closed.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from prometheus_client import CollectorRegistry

from kairship.apiserver.audit import Audit
from kairship.apiserver.auth.authentication import Authenticator
from kairship.apiserver.auth.authorisation import CallAuthoriser
from kairship.apiserver.flowcontrol.client_address import TrustedProxies
from kairship.apiserver.flowcontrol.connection_slots import ConnectionSlots
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.apiserver.grpc.health import Health
from kairship.apiserver.grpc.reflection import Reflection
from kairship.apiserver.grpc.server import Handlers, make_server
from kairship.apiserver.http.api_docs import pages
from kairship.apiserver.http.connections import HttpServer
from kairship.apiserver.http.rest import Page, Rest
from kairship.apiserver.http.routing import Router
from kairship.apiserver.pipeline.chain import Chain
from kairship.apiserver.pipeline.metrics import Metrics
from kairship.apiserver.pipeline.tracing import Tracing
from kairship.apiserver.proxy.access_log import AccessLog
from kairship.apiserver.proxy.handler import Proxy, ProxyDependencies
from kairship.apiserver.proxy.metrics import ProxyMetrics
from kairship.process.certificates import ServerCertificate
from kairship.rpc.errors import Unavailable
from kairship.rpc.service_registry import ServiceRegistry
from kairship.wire import descriptors, methods

_BACKLOG = 1024
_FLUSH_SECONDS = 5.0
"""Seconds for sending the last bytes of finished replies."""


class Entrance:
    def __init__(
        self,
        registry: ServiceRegistry,
        *,
        authenticator: Authenticator,
        authoriser: CallAuthoriser,
        audit: Audit,
        limits: Limits,
        metrics: CollectorRegistry,
        tracing: Tracing,
        webhooks: Mapping[str, Page] | None = None,
        proxied: ProxyDependencies | None = None,
        trusted_proxies: TrustedProxies | None = None,
    ) -> None:
        """`proxied` is what the native proxy works with; without it, nothing is proxied. `webhooks` are POST handlers
        by path, which authenticate their own callers."""
        self._metrics = Metrics(metrics)
        self._trusted_proxies = trusted_proxies = trusted_proxies or TrustedProxies()
        self._chain = Chain(
            registry,
            authenticator=authenticator,
            authoriser=authoriser,
            audit=audit,
            limits=limits,
            metrics=self._metrics,
            tracing=tracing,
        )
        self._access_log = AccessLog(ProxyMetrics(metrics))
        proxy = None
        if proxied is not None:
            proxy = Proxy(
                proxied,
                authenticator=authenticator,
                fair_queue=self._chain.fair_queue,
                streams=self._chain.streams,
                limits=limits,
                access_log=self._access_log,
            )
        router = Router(methods().values())
        self._rest = Rest(
            self._chain,
            router,
            pages=pages(),
            webhooks=webhooks or {},
            trusted_proxies=trusted_proxies,
            proxy=proxy,
        )
        services = {method.path[1:].rpartition("/")[0] for method in methods().values()}
        self._health = Health(services)
        reflection = Reflection(descriptors(), {*services, "grpc.health.v1.Health"})
        handlers = Handlers(
            self._chain,
            methods().values(),
            standard={**self._health.handlers(), **reflection.handlers()},
            trusted_proxies=trusted_proxies,
        )
        self._grpc = make_server(handlers, limits)

    @asynccontextmanager
    async def serving(
        self,
        listening: socket.socket,
        grpc_address: str,
        *,
        certificate: ServerCertificate | None = None,
        linger: float = 0.0,
        grace: float = 30.0,
    ) -> AsyncIterator[int]:
        """Serves REST on a listening socket, and gRPC at an address. The context's value is the port of gRPC."""
        slots = ConnectionSlots(self._chain.limits, is_shared=self._trusted_proxies.trusts)
        http = HttpServer(self._rest.handle, slots=slots, metrics=self._metrics)
        runner = web.ServerRunner(http, shutdown_timeout=_FLUSH_SECONDS)
        port = self._add_grpc_port(grpc_address, certificate)
        await runner.setup()
        try:
            await self._grpc.start()
            context = certificate.context if certificate else None
            await web.SockSite(runner, listening, ssl_context=context, backlog=_BACKLOG).start()
            yield port
        finally:
            self._health.stop()
            http.start_draining()
            await asyncio.sleep(linger)
            self._chain.streams.end_all(Unavailable("this server is about to stop; call again", retry_after=1.0))
            await asyncio.gather(_close(http, runner, grace), self._grpc.stop(grace))
            self._access_log.flush()

    @property
    def streams(self) -> Streams:
        """The open streams."""
        return self._chain.streams

    def set_serving(self) -> None:
        """Reports over gRPC's health service that calls are served from now on."""
        self._health.serve()

    def _add_grpc_port(self, address: str, certificate: ServerCertificate | None) -> int:
        if certificate is None:
            return self._grpc.add_insecure_port(address)
        return self._grpc.add_secure_port(address, certificate.grpc_credentials())


async def _close(http: HttpServer, runner: web.ServerRunner, grace: float) -> None:
    for site in runner.sites:
        await site.stop()
    with suppress(TimeoutError):
        await http.drain(grace=grace)
    await runner.cleanup()
