"""The apiserver process: workers that die are replaced, certificates are reloaded, and a stop interrupts no request."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from support.entrance import BASE
from support.entrance_process import EntranceProcess, entrance_process
from support.ghippo_process import ghippo_of
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.gen.grpc.health.v1.health_pb import HealthCheckRequest, HealthCheckResponse

WATCH_HEALTH = "/grpc.health.v1.Health/Watch"
Status = HealthCheckResponse.ServingStatus


@pytest.fixture
async def entrance(plane: EmbeddedPlane, tmp_path: Path) -> AsyncIterator[EntranceProcess]:
    connection, ghippo = await plane.global_connection(), await ghippo_of(plane)
    async with entrance_process(connection, tmp_path, ghippo=ghippo, workers=2) as running:
        yield running


async def until_both_ready(entrance: EntranceProcess) -> None:
    """Waits until both workers say that they are ready: one that is busy for some seconds is left out of the answer."""

    async def both_ready() -> NotYet | bool:
        status, said = await entrance.ask("/readyz")
        return (status == 200 and said.count(": ready") == 2) or NotYet((status, said))

    await eventually(both_ready, "two workers that are ready")


async def test_a_worker_that_dies_is_replaced_and_the_others_go_on(entrance: EntranceProcess) -> None:
    async with entrance.client() as client:
        killed = entrance.workers()[0]
        os.kill(killed, signal.SIGKILL)
        statuses = {(await client.request("GET", f"{BASE}/instances")).status for _ in range(50)}
        assert statuses == {200}
    await entrance.until("serving", 3)
    await until_both_ready(entrance)
    assert killed not in entrance.workers()[1:]

    async def counted() -> NotYet | bool:
        _, figures = await entrance.ask("/metrics")
        expected = ('kairship_apiserver_requests_total{code="OK"', 'worker="0"', 'worker="1"')
        return all(text in figures for text in expected) or NotYet(figures)

    await eventually(counted, "the metrics of both workers")


async def test_a_worker_that_hangs_is_replaced(entrance: EntranceProcess) -> None:
    """SIGSTOP simulates an event loop that hangs: the worker lives, keeps its connections and answers nothing."""
    await until_both_ready(entrance)  # a worker that has never answered a probe has longer before it is killed
    hanging = entrance.workers()[0]
    os.kill(hanging, signal.SIGSTOP)
    async with entrance.client() as client:
        statuses = {(await client.request("GET", f"{BASE}/instances")).status for _ in range(10)}
        assert statuses == {200}
    # It is killed, and reported, again as long as it has not ended.
    assert {line["pid"] for line in await entrance.until("worker hangs")} == {hanging}
    await entrance.until("serving", 3)
    assert not Path(f"/proc/{hanging}").exists()
    await until_both_ready(entrance)


def certificate_of(port: int, context: ssl.SSLContext, protocol: str) -> int:
    context.set_alpn_protocols([protocol])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname="server.test") as connection,
    ):
        found = connection.getpeercert()
        assert found is not None
        return int(str(found["serialNumber"]), 16)


async def test_a_renewed_certificate_is_used_at_once_on_both_ports(entrance: EntranceProcess) -> None:
    ports = {
        "http/1.1": int(entrance.rest_url.rpartition(":")[2]),
        "h2": int(entrance.grpc_address.rpartition(":")[2]),
    }

    async def seen() -> dict[str, int]:
        return {
            protocol: await asyncio.to_thread(certificate_of, port, entrance.context, protocol)
            for protocol, port in ports.items()
        }

    before = await seen()
    assert before["h2"] == before["http/1.1"]
    async with entrance.client() as client:
        assert (await client.request("GET", "/openapi.json")).status == 200
        entrance.issue(entrance.authority.issue())
        entrance.process.send_signal(signal.SIGHUP)
        await entrance.until("certificate renewed", 2)
        after = await seen()
        assert after["h2"] == after["http/1.1"] != before["h2"]
        assert (await client.request("GET", "/openapi.json")).status == 200  # on the connection from before

        (entrance.folder / "tls.key").write_bytes(entrance.authority.issue().key)  # it does not match
        entrance.process.send_signal(signal.SIGHUP)
        await entrance.until("certificate was not renewed", 2)
        assert await seen() == after


async def test_a_stop_cuts_no_request(entrance: EntranceProcess) -> None:
    """A request whose body is still being sent when the server is stopped."""
    port = int(entrance.rest_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=entrance.context, server_hostname="server.test"
    )
    writer.write(
        f"POST {BASE}/instances HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {entrance.token}\r\n"
        "Content-Length: 2\r\n\r\n{".encode()
    )
    await writer.drain()
    worker = await eventually(entrance.serving_worker, "the request being served")
    async with entrance.client() as client:
        watching: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = client.channel.unary_stream(WATCH_HEALTH)
        health = aiter(watching(HealthCheckRequest().to_binary()))
        assert HealthCheckResponse.from_binary(await anext(health)).status == Status.SERVING
        entrance.process.send_signal(signal.SIGTERM)
        assert HealthCheckResponse.from_binary(await anext(health)).status == Status.NOT_SERVING

    async def is_stopping() -> NotYet | bool:
        """The worker with the request as well: the health above may be that of the other one."""
        status, said = await entrance.ask("/readyz")
        return (status == 503 and f"worker {worker}: stopping" in said) or NotYet((status, said))

    await eventually(is_stopping, "the process being unready, and the worker about to stop")
    writer.write(b"}")
    async with asyncio.timeout(PATIENCE):
        reply = await reader.read()
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert b"Connection: close" in reply
    writer.close()
    async with asyncio.timeout(PATIENCE):
        assert await entrance.process.wait() == 0


async def test_workers_die_with_the_process(entrance: EntranceProcess) -> None:
    workers = entrance.workers()
    entrance.process.kill()
    await entrance.process.wait()

    def all_gone() -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in workers)

    await eventually(all_gone, "the end of the workers")
