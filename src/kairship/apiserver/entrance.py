"""REST and gRPC together, in front of one chain: what a worker serves.

It serves as long as its context lasts, and ends in order: first it says that it will not serve any more (health), then
streams are told to end, then what runs has its time to finish, and only then connections are closed.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from aiohttp import web
from prometheus_client import CollectorRegistry

from kairship.apiserver.audit import Audit
from kairship.apiserver.authentication import Authenticator
from kairship.apiserver.authorisation import Authorizer
from kairship.apiserver.chain import Chain
from kairship.apiserver.connections import HttpServer
from kairship.apiserver.documentation import pages
from kairship.apiserver.grpc_health import Health
from kairship.apiserver.grpc_reflection import Reflection
from kairship.apiserver.grpc_server import Handlers, make_server
from kairship.apiserver.limits import Limits
from kairship.apiserver.metrics import Metrics
from kairship.apiserver.origins import Origins
from kairship.apiserver.proxy.figures import Figures
from kairship.apiserver.proxy.proxy import Behind, Proxy
from kairship.apiserver.proxy.records import Records
from kairship.apiserver.rest import Page, Rest
from kairship.apiserver.routing import Router
from kairship.apiserver.streams import Streams
from kairship.apiserver.tracing import Tracing
from kairship.process.certificates import ServerCertificate
from kairship.rpc.errors import Unavailable
from kairship.rpc.registry import Registry
from kairship.wire import descriptors, methods

_BACKLOG = 1024
_LAST_WORDS = 5.0
"""Seconds for the last bytes of replies that are ready."""


class Entrance:
    def __init__(
        self,
        registry: Registry,
        *,
        authenticator: Authenticator,
        authorizer: Authorizer,
        audit: Audit,
        limits: Limits,
        metrics: CollectorRegistry,
        tracing: Tracing,
        receivers: Mapping[str, Page] | None = None,
        behind: Behind | None = None,
        origins: Origins | None = None,
    ) -> None:
        """`behind` is what the native proxy leads to; `origins` knows who may say where a request comes from."""
        self._metrics = Metrics(metrics)
        origins = origins or Origins()
        self._chain = Chain(
            registry,
            authenticator=authenticator,
            authorizer=authorizer,
            audit=audit,
            limits=limits,
            metrics=self._metrics,
            tracing=tracing,
        )
        self._records = Records(Figures(metrics))
        proxy = None
        if behind is not None:
            proxy = Proxy(
                behind,
                authenticator=authenticator,
                admission=self._chain.admission,
                streams=self._chain.streams,
                limits=limits,
                records=self._records,
            )
        router = Router(methods().values())
        self._rest = Rest(self._chain, router, pages=pages(), receivers=receivers or {}, origins=origins, proxy=proxy)
        services = {method.path[1:].rpartition("/")[0] for method in methods().values()}
        self._health = Health(services)
        reflection = Reflection(descriptors(), {*services, "grpc.health.v1.Health"})
        beside = {**self._health.handlers(), **reflection.handlers()}
        self._grpc = make_server(Handlers(self._chain, methods().values(), beside=beside, origins=origins), limits)

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
        """REST on a socket that listens, gRPC at an address; its port is returned."""
        http = HttpServer(self._rest.handle, connections=self._chain.limits.connections, metrics=self._metrics)
        runner = web.ServerRunner(http, shutdown_timeout=_LAST_WORDS)
        port = self._listen_to_grpc(grpc_address, certificate)
        await runner.setup()
        try:
            await self._grpc.start()
            context = certificate.context if certificate else None
            await web.SockSite(runner, listening, ssl_context=context, backlog=_BACKLOG).start()
            yield port
        finally:
            self._health.stop()
            http.say_goodbye()
            await asyncio.sleep(linger)
            self._chain.streams.end_all(Unavailable("this server is about to stop; call again", retry_after=1.0))
            await asyncio.gather(_close(http, runner, grace), self._grpc.stop(grace))
            self._records.write()

    @property
    def streams(self) -> Streams:
        """Those that are open."""
        return self._chain.streams

    def announce(self) -> None:
        """Say that calls are served from now on."""
        self._health.serve()

    def _listen_to_grpc(self, address: str, certificate: ServerCertificate | None) -> int:
        if certificate is None:
            return self._grpc.add_insecure_port(address)
        return self._grpc.add_secure_port(address, certificate.grpc_credentials())


async def _close(http: HttpServer, runner: web.ServerRunner, grace: float) -> None:
    for site in runner.sites:
        await site.stop()
    with suppress(TimeoutError):
        await http.drain(grace=grace)
    await runner.cleanup()
