"""A backend answers only processes of the plane that may call it, on behalf of the callers that they name."""

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest
from prometheus_client import CollectorRegistry
from support.certificates import Authority
from support.echo import INSTANCE, Echo
from support.entrance import METHODS
from support.our_kinds import Kube

from kairship.gen.kairship.instance.v1alpha1.instance_pb import GetInstanceRequest, Instance, WatchInstancesRequest
from kairship.kube import AlreadyExists, Client, kinds
from kairship.process.certificates import CertificateFiles, ServerCertificate
from kairship.resources import NAMESPACE
from kairship.rpc.backend_channel import BackendAddress, BackendChannel
from kairship.rpc.backend_server import BackendServer
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, Code, InvalidArgument
from kairship.rpc.service_registry import ServiceRegistry
from kairship.rpc.service_tokens import ServiceTokens

AUDIENCE = "kairship-test"
GET, WATCH = METHODS["Instance.GetInstance"], METHODS["Instance.WatchInstances"]
ANN = Caller(id="ann", name="Ann", groups=("readers",), authenticated_by="session")


class RunningBackend:
    """A running backend server, and what is needed to call it."""

    def __init__(self, folder: Path, client: Client, account: str, port: int) -> None:
        self._folder = folder
        self._client = client
        self.account = account
        self.port = port

    async def token(self, *, account: str | None = None, audience: str = AUDIENCE) -> str:
        reply = await self._client.create(
            kinds.SERVICE_ACCOUNTS,
            {"spec": {"audiences": [audience], "expirationSeconds": 600}},
            namespace=NAMESPACE,
            name=account or self.account,
            subresource="token",
        )
        token: str = reply["status"]["token"]
        return token

    @asynccontextmanager
    async def channel(self, token: str) -> AsyncIterator[BackendChannel]:
        file = self._folder / uuid.uuid4().hex
        file.write_text(token)
        address = BackendAddress(target=f"127.0.0.1:{self.port}", ca=self._folder / "ca.crt", token=file)
        channel = BackendChannel(address, name="the test's backend")
        try:
            yield channel
        finally:
            await channel.close()


def call(seconds: float = 10.0) -> Call:
    return Call(request_id="r-1", caller=ANN, method=GET, deadline=time.monotonic() + seconds, origin="192.0.2.1")


async def account_in(client: Client) -> str:
    with suppress(AlreadyExists):
        await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
    name = f"backend-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace=NAMESPACE)
    return name


@asynccontextmanager
async def serving(kube: Kube, tmp_path: Path, service: object) -> AsyncIterator[RunningBackend]:
    authority = Authority()
    issued = authority.issue()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "tls.crt").write_bytes(issued.certificate)
    (tmp_path / "tls.key").write_bytes(issued.key)
    async with Client(kube.connection) as client:
        account = await account_in(client)
        tokens = ServiceTokens(client, audience=AUDIENCE, accounts={account})
        server = BackendServer(ServiceRegistry({INSTANCE: service}), tokens, metrics=CollectorRegistry())
        certificate = ServerCertificate(CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))
        async with server.serving("127.0.0.1:0", certificate) as port:
            yield RunningBackend(tmp_path, client, account, port)


@pytest.fixture
async def backend(kube: Kube, tmp_path: Path, echo: Echo) -> AsyncIterator[RunningBackend]:
    async with serving(kube, tmp_path, echo) as backend:
        yield backend


@pytest.fixture
def echo() -> Echo:
    return Echo()


async def refusal(backend: RunningBackend, echo: Echo, token: str) -> ApiError:
    async with backend.channel(token) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert not echo.requests
    return refused.value


async def test_the_backend_knows_the_caller(backend: RunningBackend, echo: Echo) -> None:
    async with backend.channel(await backend.token()) as channel:
        reply = await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert isinstance(reply, Instance)
    assert reply.metadata is not None
    assert reply.metadata.name == "demo"
    served = echo.calls[0]
    assert (served.caller, served.origin, served.request_id) == (ANN, "192.0.2.1", "r-1")
    assert 0 < served.remaining() <= 10


async def test_metadata_of_the_reply_reaches_the_caller(backend: RunningBackend) -> None:
    own_call = call()
    async with backend.channel(await backend.token()) as channel:
        await channel.unary(GET, GetInstanceRequest(name="demo"), own_call)
        assert (own_call.data_age, own_call.warnings) == (None, [])
        await channel.unary(GET, GetInstanceRequest(name="old"), own_call)
    assert (own_call.data_age, own_call.warnings) == (12.5, ["it is old"])


async def test_replies_come_one_by_one(backend: RunningBackend, echo: Echo) -> None:
    echo.released.set()
    async with backend.channel(await backend.token()) as channel:
        replies = channel.stream(WATCH, WatchInstancesRequest(), call())
        found = [await anext(replies) for _ in range(5)]
        await replies.aclose()
    assert len(found) == 5


class Refusing:
    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance:
        raise InvalidArgument(violations=[("name", "is not a name")])


async def test_errors_arrive_as_they_were_raised(kube: Kube, tmp_path: Path) -> None:
    async with serving(kube, tmp_path, Refusing()) as backend, backend.channel(await backend.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message == "name: is not a name"
    assert refused.value.details == InvalidArgument(violations=[("name", "is not a name")]).details


async def test_a_defect_says_no_more_than_where_to_look(backend: RunningBackend) -> None:
    async with backend.channel(await backend.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="defect"), call())
    assert refused.value.code is Code.INTERNAL
    assert "hunter2" not in refused.value.message
    assert "r-1" in refused.value.message


async def test_a_passed_deadline_is_reported(backend: RunningBackend) -> None:
    async with backend.channel(await backend.token()) as channel:
        with pytest.raises(ApiError) as late:
            await channel.unary(GET, GetInstanceRequest(name="slow"), call(0.5))
    assert late.value.code is Code.DEADLINE_EXCEEDED


async def test_a_token_for_another_audience_is_refused(backend: RunningBackend, echo: Echo) -> None:
    refused = await refusal(backend, echo, await backend.token(audience="kairship-other"))
    assert refused.code is Code.UNAUTHENTICATED


async def test_another_account_is_refused(backend: RunningBackend, echo: Echo, kube: Kube) -> None:
    async with Client(kube.connection) as client:
        other = await account_in(client)
    refused = await refusal(backend, echo, await backend.token(account=other))
    assert refused.code is Code.UNAUTHENTICATED


async def test_a_token_that_was_changed_is_refused(backend: RunningBackend, echo: Echo) -> None:
    header, claims, signature = (await backend.token()).split(".")
    swapped = signature[:-6] + ("A" if signature[-6] != "A" else "B") + signature[-5:]
    refused = await refusal(backend, echo, f"{header}.{claims}.{swapped}")
    assert refused.code is Code.UNAUTHENTICATED


@pytest.mark.parametrize("token", ["x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
async def test_what_is_no_token_is_refused(backend: RunningBackend, echo: Echo, token: str) -> None:
    assert (await refusal(backend, echo, token)).code is Code.UNAUTHENTICATED


async def test_a_call_without_a_caller_is_refused(backend: RunningBackend) -> None:
    async with backend.channel(await backend.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.internal_unary(GET, GetInstanceRequest(name="demo"), timeout=5)
    assert refused.value.code is Code.UNAUTHENTICATED


async def test_a_method_without_a_handler_is_unimplemented(backend: RunningBackend) -> None:
    method = METHODS["Instance.GetInstanceJSON"]
    async with backend.channel(await backend.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(method, method.request(), call())
    assert refused.value.code is Code.UNIMPLEMENTED


async def test_a_backend_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    (tmp_path / "token").write_text("sixteen-characters")
    address = BackendAddress(target="127.0.0.1:1", ca=tmp_path / "ca.crt", token=tmp_path / "token")
    channel = BackendChannel(address, name="global management")
    with pytest.raises(ApiError) as refused:
        await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    await channel.close()
    assert refused.value.code is Code.UNAVAILABLE
    assert refused.value.retry_after == 1.0
    assert "global management" in refused.value.message


async def test_without_tls_there_is_no_answer(backend: RunningBackend) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{backend.port}") as plain:
        invoke: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = plain.unary_unary(GET.path)
        with pytest.raises(grpc.aio.AioRpcError):
            await invoke(b"", timeout=2)


async def test_the_entrance_forwards_methods_of_a_backend(backend: RunningBackend, echo: Echo) -> None:
    async with backend.channel(await backend.token()) as channel:
        registry = ServiceRegistry({}, backends={"kairship.v1alpha1": channel})
        handler = registry.unary(GET)
        assert handler is not None
        reply = await handler(GetInstanceRequest(name="passed-on"), call())
        assert isinstance(reply, Instance)
    assert echo.calls[0].caller == ANN
