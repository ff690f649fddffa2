"""Measures the cost of the entrance: CPU-seconds of the server per request, compared with a trivial handler.

    python benchmarks/entrance.py

A request passes the whole chain. Servers run in separate processes, and their usage is read from the operating system,
so the cost of the client does not count. Each is measured several times in turn, and the least disturbed run counts.
Target: a small get over REST costs at most 3.3 times as much as a trivial handler of aiohttp, and a stream that the
client does not read does not fill the memory.
"""

import asyncio
import hashlib
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import grpc
import psutil
import report
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry

from kairship.access import Authoriser, Binding, Freshness, GrantIndex, Identities, KnownInstances, Role, permissions_of
from kairship.access.bindings import BindingSpec
from kairship.apiserver.audit import Spool, SpooledAudit
from kairship.apiserver.auth.authorisation import MethodAuthoriser
from kairship.apiserver.auth.revocation import DirectoryRevocationCheck
from kairship.apiserver.auth.token_authenticator import TokenAuthenticator
from kairship.apiserver.entrance import Entrance
from kairship.apiserver.flowcontrol.limits import Limits
from kairship.apiserver.pipeline.tracing import NoTracing
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    GetInstanceRequest,
    Instance,
    InstanceSpec,
    InstanceStatus,
    ListInstancesRequest,
    ListInstancesResponse,
    WatchInstancesRequest,
    WatchInstancesResponse,
)
from kairship.gen.kairship.internal.v1.directory_pb import FollowResponse, Identity, Token
from kairship.gen.kairship.types.v1alpha1.list_pb import Pagination
from kairship.gen.kairship.types.v1alpha1.metadata_pb import ObjectMeta
from kairship.process.logs import log_as_json
from kairship.reconcile import Metadata, SystemClock
from kairship.resources import ScopeLevel, SubjectKind
from kairship.resources.access_binding import Origin, OriginKind, Scope, Subject
from kairship.resources.access_binding import Role as BoundRole
from kairship.rpc.calls import Call
from kairship.rpc.service_registry import ServiceRegistry
from kairship.wire import write

TARGET = 3.3
ADMIN = "admin"
LIMITS = Limits(calls_per_second=1e6, calls_burst=1_000_000)
REQUESTS, LISTS, RUNS, AT_ONCE = 3000, 600, 3, 16
UNREAD_SECONDS = 4.0
MOST_GROWTH = 20.0
TOKEN = "benchmark-benchmark"  # noqa: S105 - of a server that lives for a minute, on loopback
PATH = "/apis/kairship.io/v1alpha1/instances"
SERVICE = "/kairship.v1alpha1.Instance"


def instance(number: int) -> Instance:
    metadata = ObjectMeta(name=f"instance-{number}", uid=f"uid-{number}", labels={"team": "platform"})
    return Instance(
        metadata=metadata,
        spec=InstanceSpec(alias="Production"),
        status=InstanceStatus(karmada_version="v1.18.2", state=InstanceStatus.State.INSTANCE_STATE_RUNNING),
    )


class Instances:
    """Answers from memory, so that only the cost of everything around it is measured."""

    def __init__(self) -> None:
        self._all = ListInstancesResponse(
            items=[instance(number) for number in range(100)], pagination=Pagination(total=100, page=1, page_size=100)
        )

    async def get_instance(self, request: GetInstanceRequest, call: Call) -> Instance:
        return self._all.items[0]

    async def list_instances(self, request: ListInstancesRequest, call: Call) -> ListInstancesResponse:
        return self._all

    async def watch_instances(
        self, request: WatchInstancesRequest, call: Call
    ) -> AsyncIterator[WatchInstancesResponse]:
        """Sends replies as fast as the client reads them."""
        while True:
            yield WatchInstancesResponse(instance=self._all.items[0])


def rights_of_administrator() -> Authoriser:
    grants, freshness = GrantIndex(), Freshness(SystemClock())
    spec = BindingSpec(
        subject=Subject(kind=SubjectKind.USER, id=ADMIN),
        role=BoundRole(id=Role.PLATFORM_ADMIN.id),
        scope=Scope(level=ScopeLevel.PLATFORM),
        origin=Origin(kind=OriginKind.PLATFORM),
        sequence=1,
        permissions=permissions_of(Role.PLATFORM_ADMIN),
    )
    grants.put(Binding(metadata=Metadata(name="administrator"), spec=spec))
    freshness.mark_connected()
    return Authoriser(grants, KnownInstances(), freshness)


def directory(token: str) -> Identities:
    """Knows the administrator, who has one access token."""
    identities = Identities(SystemClock())
    known = Token(id="t", hash=hashlib.sha256(token.encode()).digest(), user=ADMIN, expires_at=2**40)
    identities.apply(FollowResponse(complete=True, identities=[Identity(id=ADMIN, name=ADMIN)], tokens=[known]))
    return identities


def authenticator(identities: Identities) -> TokenAuthenticator:
    async def look_up(_: bytes) -> bool:
        return False

    return TokenAuthenticator(identities, look_up=look_up, note_use=lambda _: None, limits=LIMITS)


async def serve_entrance(folder: Path) -> None:
    log_as_json()
    spool = Spool(folder / "audit")
    identities = directory((folder / "token").read_text())
    entrance = Entrance(
        ServiceRegistry({"kairship.v1alpha1.Instance": Instances()}),
        authenticator=authenticator(identities),
        authoriser=MethodAuthoriser(rights_of_administrator(), DirectoryRevocationCheck(identities)),
        audit=SpooledAudit(spool),
        limits=LIMITS,
        metrics=CollectorRegistry(),
        tracing=NoTracing(),
    )
    listening = socket.create_server(("127.0.0.1", 0))
    async with entrance.serving(listening, "127.0.0.1:0") as grpc_port:
        print(json.dumps({"rest": listening.getsockname()[1], "grpc": grpc_port}), flush=True)
        await spool.run()


async def serve_trivial(_: Path) -> None:
    """A reply as small as that of the small get, from aiohttp's own application and router."""
    body = write(instance(0))

    async def get(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get(PATH + "/{name}", get)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    print(json.dumps({"rest": listening.getsockname()[1]}), flush=True)
    await asyncio.Event().wait()


class Server:
    def __init__(self, kind: str, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, kind, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self.ports: dict[str, int] = json.loads(self._process.stdout.readline())
        self._watched = psutil.Process(self._process.pid)

    def cpu(self) -> float:
        times = self._watched.cpu_times()
        return float(times.user + times.system)

    def memory(self) -> float:
        """Resident memory in MiB."""
        return float(self._watched.memory_info().rss) / (1 << 20)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


async def cost(server: Server, call: Callable[[], Awaitable[object]], count: int) -> float:
    """The CPU-seconds of the server per call."""

    async def caller() -> None:
        for _ in range(count // AT_ONCE):
            await call()

    await asyncio.gather(*(call() for _ in range(AT_ONCE)))
    before = server.cpu()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return (server.cpu() - before) / (count // AT_ONCE * AT_ONCE)


async def measure(trivial: Server, entrance: Server) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        grpc.aio.insecure_channel(f"127.0.0.1:{entrance.ports['grpc']}") as channel,
    ):

        def over_rest(server: Server, path: str) -> Callable[[], Awaitable[object]]:
            async def call() -> None:
                async with session.get(f"http://127.0.0.1:{server.ports['rest']}{path}") as reply:
                    assert reply.status == 200
                    await reply.read()

            return call

        def over_grpc(method: str, request: bytes) -> Callable[[], Awaitable[object]]:
            stub: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{SERVICE}/{method}")

            async def call() -> None:
                await stub(request, metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=30)

            return call

        get = GetInstanceRequest(name="instance-0").to_binary()
        measured = {
            "trivial handler": (trivial, over_rest(trivial, f"{PATH}/instance-0"), REQUESTS),
            "small get, REST": (entrance, over_rest(entrance, f"{PATH}/instance-0"), REQUESTS),
            "list of 100, REST": (entrance, over_rest(entrance, f"{PATH}?pageSize=100"), LISTS),
            "small get, gRPC": (entrance, over_grpc("GetInstance", get), REQUESTS),
            "list of 100, gRPC": (entrance, over_grpc("ListInstances", b""), LISTS),
        }
        best: dict[str, float] = {}
        for _ in range(RUNS):
            for name, (server, call, count) in measured.items():
                best[name] = min(best.get(name, float("inf")), await cost(server, call, count))
        return best


async def growth(server: Server) -> dict[str, float]:
    """The MiB by which the server grows while a client requests an endless stream and does not read it."""
    grown: dict[str, float] = {}
    before = server.memory()
    _, writer = await asyncio.open_connection("127.0.0.1", server.ports["rest"])
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(f"GET {PATH}:watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    await asyncio.sleep(UNREAD_SECONDS)
    grown["unread stream, REST"] = server.memory() - before
    writer.transport.abort()
    before = server.memory()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        stub: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"{SERVICE}/WatchInstances")
        call = stub(b"", metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=60)
        await anext(aiter(call))
        await asyncio.sleep(UNREAD_SECONDS)
        grown["unread stream, gRPC"] = server.memory() - before
        call.cancel()
    return grown


def main() -> int:
    kinds = {"entrance": serve_entrance, "trivial": serve_trivial}
    if len(sys.argv) > 1:
        uvloop.run(kinds[sys.argv[1]](Path(sys.argv[2])))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "token").write_text(TOKEN)
        servers = [Server(kind, folder) for kind in ("trivial", "entrance")]
        try:
            figures = asyncio.run(measure(*servers))
            grown = asyncio.run(growth(servers[1]))
        finally:
            for server in servers:
                server.stop()
    base = figures["trivial handler"]
    ratios = {name: figure / base for name, figure in figures.items()}
    report.write(
        "entrance",
        figures={
            "cpu_microseconds": {name: round(figure * 1e6, 1) for name, figure in figures.items()},
            "memory_growth_mib": {name: round(figure, 1) for name, figure in grown.items()},
        },
        ratios={name: round(ratio, 2) for name, ratio in ratios.items()},
    )
    report.table(
        "CPU of the server per request",
        ["", "µs", "of trivial"],
        [[name, f"{figure * 1e6:.0f}", f"{ratios[name]:.2f}"] for name, figure in figures.items()],
    )
    report.table(
        "Growth of the server by a reader that does not read",
        ["", "MiB"],
        [[name, f"{figure:.1f}"] for name, figure in grown.items()],
    )
    met = ratios["small get, REST"] <= TARGET
    met = met and max(grown.values()) <= MOST_GROWTH
    print(
        f"targets: small get over REST at most {TARGET} times the trivial handler, growth at most {MOST_GROWTH} MiB: "
        f"{'met' if met else 'MISSED'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
