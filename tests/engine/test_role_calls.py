"""A role behind the entrance answers processes of the plane that may call it, for whom they name, and nobody else."""

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
from kairship.rpc.calls import Call, Caller
from kairship.rpc.errors import ApiError, Code, InvalidArgument
from kairship.rpc.registry import Registry
from kairship.rpc.role_channel import RoleAddress, RoleChannel
from kairship.rpc.role_server import RoleServer
from kairship.rpc.service_tokens import ServiceTokens

AUDIENCE = "kairship-test"
GET, WATCH = METHODS["Instance.GetInstance"], METHODS["Instance.WatchInstances"]
ANN = Caller(id="ann", name="Ann", groups=("readers",), authenticated_by="session")


class Role:
    """One that serves, and what is needed to call it."""

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
    async def channel(self, token: str) -> AsyncIterator[RoleChannel]:
        file = self._folder / uuid.uuid4().hex
        file.write_text(token)
        address = RoleAddress(target=f"127.0.0.1:{self.port}", ca=self._folder / "ca.crt", token=file)
        channel = RoleChannel(address, role="the test's role")
        try:
            yield channel
        finally:
            await channel.close()


def call(seconds: float = 10.0) -> Call:
    return Call(request_id="r-1", caller=ANN, method=GET, deadline=time.monotonic() + seconds, origin="192.0.2.1")


async def account_in(client: Client) -> str:
    with suppress(AlreadyExists):
        await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
    name = f"role-{uuid.uuid4().hex[:8]}"
    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace=NAMESPACE)
    return name


@asynccontextmanager
async def serving(kube: Kube, tmp_path: Path, service: object) -> AsyncIterator[Role]:
    authority = Authority()
    issued = authority.issue()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "tls.crt").write_bytes(issued.certificate)
    (tmp_path / "tls.key").write_bytes(issued.key)
    async with Client(kube.connection) as client:
        account = await account_in(client)
        tokens = ServiceTokens(client, audience=AUDIENCE, accounts={account})
        server = RoleServer(Registry({INSTANCE: service}), tokens, metrics=CollectorRegistry())
        certificate = ServerCertificate(CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"))
        async with server.serving("127.0.0.1:0", certificate) as port:
            yield Role(tmp_path, client, account, port)


@pytest.fixture
async def role(kube: Kube, tmp_path: Path, echo: Echo) -> AsyncIterator[Role]:
    async with serving(kube, tmp_path, echo) as role:
        yield role


@pytest.fixture
def echo() -> Echo:
    return Echo()


async def refusal(role: Role, echo: Echo, token: str) -> ApiError:
    async with role.channel(token) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert not echo.requests
    return refused.value


async def test_the_role_knows_who_asks(role: Role, echo: Echo) -> None:
    async with role.channel(await role.token()) as channel:
        reply = await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert isinstance(reply, Instance)
    assert reply.metadata is not None
    assert reply.metadata.name == "demo"
    served = echo.calls[0]
    assert (served.caller, served.origin, served.request_id) == (ANN, "192.0.2.1", "r-1")
    assert 0 < served.remaining() <= 10


async def test_what_the_role_tells_beside_its_reply_reaches_the_caller(role: Role) -> None:
    asked = call()
    async with role.channel(await role.token()) as channel:
        await channel.unary(GET, GetInstanceRequest(name="demo"), asked)
        assert (asked.data_age, asked.warnings) == (None, [])
        await channel.unary(GET, GetInstanceRequest(name="old"), asked)
    assert (asked.data_age, asked.warnings) == (12.5, ["it is old"])


async def test_replies_come_one_by_one(role: Role, echo: Echo) -> None:
    echo.released.set()
    async with role.channel(await role.token()) as channel:
        replies = channel.stream(WATCH, WatchInstancesRequest(), call())
        found = [await anext(replies) for _ in range(5)]
        await replies.aclose()
    assert len(found) == 5


class Refusing:
    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance:
        raise InvalidArgument(violations=[("name", "is not a name")])


async def test_errors_arrive_as_they_were_raised(kube: Kube, tmp_path: Path) -> None:
    async with serving(kube, tmp_path, Refusing()) as role, role.channel(await role.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.message == "name: is not a name"
    assert refused.value.details == InvalidArgument(violations=[("name", "is not a name")]).details


async def test_a_defect_says_no_more_than_where_to_look(role: Role) -> None:
    async with role.channel(await role.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(GET, GetInstanceRequest(name="defect"), call())
    assert refused.value.code is Code.INTERNAL
    assert "hunter2" not in refused.value.message
    assert "r-1" in refused.value.message


async def test_time_that_runs_out_is_told(role: Role) -> None:
    async with role.channel(await role.token()) as channel:
        with pytest.raises(ApiError) as late:
            await channel.unary(GET, GetInstanceRequest(name="slow"), call(0.5))
    assert late.value.code is Code.DEADLINE_EXCEEDED


async def test_a_token_for_another_audience_is_refused(role: Role, echo: Echo) -> None:
    refused = await refusal(role, echo, await role.token(audience="kairship-other"))
    assert refused.code is Code.UNAUTHENTICATED


async def test_another_account_is_refused(role: Role, echo: Echo, kube: Kube) -> None:
    async with Client(kube.connection) as client:
        other = await account_in(client)
    refused = await refusal(role, echo, await role.token(account=other))
    assert refused.code is Code.UNAUTHENTICATED


async def test_a_token_that_was_changed_is_refused(role: Role, echo: Echo) -> None:
    header, claims, signature = (await role.token()).split(".")
    swapped = signature[:-6] + ("A" if signature[-6] != "A" else "B") + signature[-5:]
    refused = await refusal(role, echo, f"{header}.{claims}.{swapped}")
    assert refused.code is Code.UNAUTHENTICATED


@pytest.mark.parametrize("token", ["x", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])
async def test_what_is_no_token_is_refused(role: Role, echo: Echo, token: str) -> None:
    assert (await refusal(role, echo, token)).code is Code.UNAUTHENTICATED


async def test_a_call_for_nobody_is_refused(role: Role) -> None:
    async with role.channel(await role.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.own(GET, GetInstanceRequest(name="demo"), timeout=5)
    assert refused.value.code is Code.UNAUTHENTICATED


async def test_what_the_role_has_not_is_said(role: Role) -> None:
    method = METHODS["Instance.GetInstanceJSON"]
    async with role.channel(await role.token()) as channel:
        with pytest.raises(ApiError) as refused:
            await channel.unary(method, method.request(), call())
    assert refused.value.code is Code.UNIMPLEMENTED


async def test_a_role_that_is_away_is_said(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    (tmp_path / "token").write_text("sixteen-characters")
    address = RoleAddress(target="127.0.0.1:1", ca=tmp_path / "ca.crt", token=tmp_path / "token")
    channel = RoleChannel(address, role="global management")
    with pytest.raises(ApiError) as refused:
        await channel.unary(GET, GetInstanceRequest(name="demo"), call())
    await channel.close()
    assert refused.value.code is Code.UNAVAILABLE
    assert refused.value.retry_after == 1.0
    assert "global management" in refused.value.message


async def test_without_tls_there_is_no_answer(role: Role) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{role.port}") as plain:
        invoke: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = plain.unary_unary(GET.path)
        with pytest.raises(grpc.aio.AioRpcError):
            await invoke(b"", timeout=2)


async def test_the_entrance_leaves_to_the_owner_what_it_does_not_answer(role: Role, echo: Echo) -> None:
    async with role.channel(await role.token()) as channel:
        registry = Registry({}, owners={"kairship.v1alpha1": channel})
        handler = registry.unary(GET)
        assert handler is not None
        reply = await handler(GetInstanceRequest(name="passed-on"), call())
        assert isinstance(reply, Instance)
    assert echo.calls[0].caller == ANN
