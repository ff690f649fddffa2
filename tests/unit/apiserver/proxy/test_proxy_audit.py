"""The audit of proxy requests: when a record is with the operating system, when it is on disk, and what callers get."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.bindings import World, bind, on
from support.certificates import Authority
from support.entrance import Client, running
from support.native_proxy import OneInstance, proxy_dependencies
from support.scripted_server import ScriptedServer, reply, scripted_server
from support.waiting import eventually

from kairship.access import Role
from kairship.apiserver.audit import Spool
from kairship.kube import Client as KubeClient
from kairship.kube import Connection

CONFIGMAPS = "/apis/kairship.io/v1alpha1/instances/east/proxy/api/v1/namespaces/shop/configmaps"
SECRET = "/apis/kairship.io/v1alpha1/instances/east/proxy/api/v1/namespaces/shop/secrets/one"
EXEC = "/apis/kairship.io/v1alpha1/instances/east/proxy/api/v1/namespaces/shop/pods/web/exec?command=id"
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "YQ=="}


class Scene:
    def __init__(self, client: Client, server: ScriptedServer, spool: Spool) -> None:
        self.client = client
        self.server = server
        self._spool = spool

    def written(self) -> bytes:
        return b"".join(path.read_bytes() for path in self._spool.folder.iterdir())

    async def post(self) -> tuple[int, bool]:
        """Returns the status, and whether the reply has Retry-After."""
        async with self.client.rest.post(CONFIGMAPS, data=b"{}", headers=self.client.headers) as answer:
            return answer.status, "Retry-After" in answer.headers

    async def get(self, path: str, **headers: str) -> int:
        async with self.client.rest.get(path, headers={**self.client.headers, **headers}) as answer:
            return answer.status

    async def wait_for_requests(self, number: int) -> None:
        await eventually(lambda: len(self.server.requests) >= number, f"{number} requests")


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    world, spool, authority = World(bind("ann", Role.ADMIN, on("east"))), Spool(folder / "audit"), Authority()
    script = (reply({"kind": "ConfigMap"}) for _ in range(10))
    async with (
        scripted_server(*script, tls=authority.issue().server_context()) as server,
        KubeClient(Connection(server.url, ca=authority.certificate)) as there,
    ):
        writing = asyncio.create_task(spool.run())
        async with running(world=world, proxied=proxy_dependencies(OneInstance(there), world, spool)) as entrance:
            found = Scene(entrance.client.named("ann"), server, spool)
            assert await found.post() == (200, False)
            yield found
        writing.cancel()
        spool.close()


@pytest.fixture
def held_disk(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Once it is cleared, every flush waits for it."""
    go, flush = threading.Event(), os.fdatasync
    go.set()

    def held(descriptor: int) -> None:
        assert go.wait(60)
        flush(descriptor)

    monkeypatch.setattr(os, "fdatasync", held)
    return go


async def test_a_write_is_forwarded_before_its_record_is_on_disk_and_answered_after(
    tmp_path: Path, held_disk: threading.Event
) -> None:
    async with scene(tmp_path) as here:
        held_disk.clear()
        before = here.written().count(b"kubernetes.create configmaps")
        writing = asyncio.create_task(here.post())
        await here.wait_for_requests(2)
        assert here.written().count(b"kubernetes.create configmaps") == before + 1
        # A request without a record is answered meanwhile; the write is not.
        assert await here.get(CONFIGMAPS) == 200
        assert not writing.done()
        held_disk.set()
        assert await writing == (200, False)


async def test_exec_and_reads_of_secrets_wait_for_the_disk(tmp_path: Path, held_disk: threading.Event) -> None:
    async with scene(tmp_path) as here:
        held_disk.clear()
        waiting = [asyncio.create_task(here.get(EXEC, **UPGRADE)), asyncio.create_task(here.get(SECRET))]

        def both_written() -> bool:
            return b"pods/exec" in here.written() and b"get secrets" in here.written()

        await eventually(both_written, "both audit events in the file")
        assert await here.get(CONFIGMAPS) == 200
        assert [sent.target.partition("?")[0] for sent in here.server.requests[1:]] == [
            "/api/v1/namespaces/shop/configmaps"
        ]
        held_disk.set()
        await asyncio.gather(*waiting)
        assert len(here.server.requests) == 4


async def test_after_a_failed_flush_nothing_more_is_forwarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    async with scene(tmp_path) as here:
        monkeypatch.setattr(os, "fdatasync", broken)
        assert await here.post() == (503, False)
        assert await here.post() == (503, True)
        assert len(here.server.requests) == 2
