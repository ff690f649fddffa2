"""An entrance in the process of the test, with the services that the test gives to it."""

import hashlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import grpc
from prometheus_client import CollectorRegistry
from protobuf import Message

from kairship.access import Role
from kairship.apiserver.audit import Audit
from kairship.apiserver.auth.authentication import Authenticator
from kairship.apiserver.auth.authorisation import MethodAuthoriser
from kairship.apiserver.entrance import Entrance
from kairship.apiserver.flowcontrol.client_address import TrustedProxies
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.flowcontrol.streams import Streams
from kairship.apiserver.http.rest import Page
from kairship.apiserver.pipeline.tracing import NoTracing, Tracing
from kairship.apiserver.proxy.handler import ProxyDependencies
from kairship.gen.google.rpc.status_pb import Status
from kairship.process.certificates import ServerCertificate
from kairship.rpc.calls import Caller, Envelope
from kairship.rpc.errors import ApiError, Unauthenticated
from kairship.rpc.service_registry import ServiceRegistry
from kairship.wire import Method, methods
from support.bindings import World, bind, on
from support.http_session import http_session

BASE = "/apis/kairship.io/v1alpha1"
TOKEN = "admin"
ADMIN = Caller(id="admin", name="admin")
METHODS: Mapping[str, Method] = {f"{method.service}.{method.name}": method for method in methods().values()}


class ByName:
    """Takes the token for the name of the caller, and what follows after `%` for groups: ann%team."""

    async def authenticate(self, envelope: Envelope) -> Caller:
        token = envelope.headers.get("authorization", "").removeprefix("Bearer ")
        if not token:
            raise Unauthenticated("there is no token")
        name, *groups = token.split("%")
        csrf = hashlib.sha256(f"csrf of {name}".encode()).hexdigest()
        return ADMIN if token == TOKEN else Caller(id=name, name=name, groups=tuple(groups), csrf=csrf)


class NoAudit:
    async def before(self, call: object, request: object) -> None:
        pass

    async def after(self, call: object, request: object, error: object) -> None:
        pass

    def refused(self, method: object, envelope: object, call: object, request: object, error: object) -> None:
        pass


class EverybodyMay:
    def authorise(self, call: object, request: object) -> None:
        pass

    def objection(self, call: object, request: object) -> Callable[[], ApiError | None]:
        return lambda: None


class NothingRevoked:
    def objection_to(self, caller: object, *, delicate: bool) -> ApiError | None:
        return None

    def staleness(self, *, delicate: bool) -> ApiError | None:
        return None


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> list[str]:
        """The paths of the fields that an error names."""
        return [
            violation["field"] for detail in self.json["details"] for violation in detail.get("fieldViolations", ())
        ]


class Client:
    """A client for REST and gRPC, as one caller."""

    def __init__(self, rest: aiohttp.ClientSession, channel: grpc.aio.Channel, token: str) -> None:
        self.rest = rest
        self.channel = channel
        self._token = token

    def named(self, token: str) -> "Client":
        return Client(self.rest, self.channel, token)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    async def request(self, verb: str, path: str, body: bytes | Any = None, **options: Any) -> Reply:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers | options.pop("headers", {})
        async with self.rest.request(verb, path, data=data, headers=headers, **options) as reply:
            return Reply(reply.status, reply.headers, await reply.read())

    async def call(self, method: Method, request: Message[Any] | bytes, **options: Any) -> Message[Any]:
        """Returns the reply to a unary call over gRPC. Raises `grpc.aio.AioRpcError`."""
        data = request if isinstance(request, bytes) else request.to_binary()
        callable_: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(method.path)
        return method.reply.from_binary(await callable_(data, metadata=self.metadata, timeout=20, **options))

    def stream(self, method: Method, request: Message[Any]) -> Any:
        """Returns the replies of a stream over gRPC, as bytes."""
        callable_: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self.channel.unary_stream(method.path)
        return callable_(request.to_binary(), metadata=self.metadata, timeout=60)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return tuple((name.lower(), value) for name, value in self.headers.items())


def status_of(error: grpc.aio.AioRpcError) -> Status:
    """The google.rpc.Status that an error of gRPC carries."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    return Status.from_binary(details)


@dataclass(frozen=True)
class Running:
    """A running entrance. `stop` does what the end of its context does."""

    client: Client
    stop: Callable[[], Coroutine[Any, Any, None]]
    rest_url: str
    grpc_address: str
    metrics: CollectorRegistry
    streams: Streams


@asynccontextmanager
async def running(
    services: Mapping[str, object] | None = None,
    *,
    limits: Limits | None = None,
    everybody_may: bool = False,
    authenticator: Authenticator | None = None,
    world: World | None = None,
    webhooks: Mapping[str, Page] | None = None,
    audit: Audit | None = None,
    tracing: Tracing | None = None,
    certificate: ServerCertificate | None = None,
    grace: float = 5.0,
    trusted_proxies: TrustedProxies | None = None,
    proxied: ProxyDependencies | None = None,
) -> AsyncIterator[Running]:
    """Runs an entrance. Without a `world`, the administrator has every right and other callers have none."""
    rights = world or World(bind(ADMIN.id, Role.PLATFORM_ADMIN, on()))
    metrics = CollectorRegistry()
    entrance = Entrance(
        ServiceRegistry(services or {}),
        authenticator=authenticator or ByName(),
        authoriser=EverybodyMay() if everybody_may else MethodAuthoriser(rights.authoriser, NothingRevoked()),
        audit=audit or NoAudit(),
        limits=limits or Limits(),
        metrics=metrics,
        tracing=tracing or NoTracing(),
        webhooks=webhooks,
        trusted_proxies=trusted_proxies or TrustedProxies(),
        proxied=proxied,
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"{'https' if certificate else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
        async with AsyncExitStack() as serving:
            port = await serving.enter_async_context(
                entrance.serving(listening, "127.0.0.1:0", certificate=certificate, grace=grace)
            )
            entrance.set_serving()
            address = f"127.0.0.1:{port}"
            async with (
                http_session(url) as session,
                grpc.aio.insecure_channel(address) as channel,
            ):
                yield Running(Client(session, channel, TOKEN), serving.aclose, url, address, metrics, entrance.streams)
