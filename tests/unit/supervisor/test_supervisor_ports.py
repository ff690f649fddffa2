"""Ports are stored, distinct and free, and the process that holds one is named."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.waiting import eventually

from kairship.supervisor import PortsExhausted, ProcessSpec, State, SupervisorClient
from kairship.supervisor.ports import PortAllocator, is_free, taken, usable_range
from kairship.supervisor.ports.claims import PortClaims

MakeSpec = Callable[..., ProcessSpec]

owners = st.sampled_from(["global", "alpha", "beta"])
names = st.lists(st.sampled_from(["etcd", "peer", "apiserver", "metrics"]), max_size=4)


@settings(max_examples=30, deadline=None)
@given(calls=st.lists(st.tuples(owners, st.one_of(st.none(), names)), max_size=12), reopen=st.booleans())
def test_a_name_keeps_its_port_and_no_two_share_one(calls: list[tuple[str, list[str] | None]], reopen: bool) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ports.json"
        book = PortAllocator(path, seed=directory)
        expected: dict[tuple[str, str], int] = {}
        for owner, wanted in calls:
            if reopen:
                book.close()
                book = PortAllocator(path, seed=directory)
            if wanted is None:
                book.release(owner)
                expected = {key: port for key, port in expected.items() if key[0] != owner}
                continue
            ports = book.allocate(owner, wanted)
            assert ports.keys() == set(wanted)
            for name, port in ports.items():
                assert expected.setdefault((owner, name), port) == port
                assert port in usable_range()
            assert len(set(expected.values())) == len(expected)
        book.close()


def test_ports_are_outside_the_ephemeral_range() -> None:
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if first_ephemeral > usable_range().start:
        assert usable_range().stop <= first_ephemeral
    assert len(usable_range()) > 1000


def allocate_once(path: Path, seed: str) -> int:
    """The port that a plane gets which runs for this moment only."""
    with closing(PortAllocator(path, seed=seed)) as ports:
        return ports.allocate("g", ["a"])["a"]


def test_running_planes_never_choose_the_same_port(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    with ExitStack() as running:
        planes = [
            running.enter_context(closing(PortAllocator(tmp_path / f"{number}.json", seed="same")))
            for number in range(4)
        ]
        chosen = [port for plane in planes for port in plane.allocate("g", names).values()]
        assert len(set(chosen)) == len(chosen)


def test_a_claim_ends_when_it_is_released() -> None:
    nobodys = 100_000 + os.getpid()  # no port at all, so that nothing else on this machine claims it
    first, second = PortClaims(), PortClaims()
    with closing_all(first, second):
        assert first.claim(nobodys)
        assert first.claim(nobodys)
        assert not second.claim(nobodys)
        first.release(nobodys)
        assert second.claim(nobodys)


@contextmanager
def closing_all(*claims: PortClaims) -> Iterator[None]:
    try:
        yield
    finally:
        for each in claims:
            each.release_all()


def test_a_port_in_use_is_passed_over_and_its_holder_named(tmp_path: Path) -> None:
    port = allocate_once(tmp_path / "first.json", "same")
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)
        assert taken([port]) == {port: f"{psutil.Process().name()} (pid {os.getpid()})"}
        assert allocate_once(tmp_path / "second.json", "same") != port
    assert taken([port]) == {}
    assert allocate_once(tmp_path / "third.json", "same") == port


def test_a_connection_that_was_just_closed_does_not_make_a_port_taken(tmp_path: Path) -> None:
    port = allocate_once(tmp_path / "ports.json", str(tmp_path))
    address = ("127.0.0.1", port)
    with socket.create_server(address) as server, socket.create_connection(address) as caller:
        accepted, _ = server.accept()
        accepted.close()  # the server closes first, so the connection stays in TIME_WAIT on its port
        assert caller.recv(1) == b""
    assert is_free(port)


def test_when_no_port_is_left_it_says_so(tmp_path: Path) -> None:
    port = allocate_once(tmp_path / "ports.json", str(tmp_path))
    with closing(PortAllocator(tmp_path / "small.json", seed="", ports=range(port, port + 1))) as ports:
        assert ports.allocate("g", ["a"]) == {"a": port}
        with pytest.raises(PortsExhausted):
            ports.allocate("g", ["b"])
        assert ports.allocate("g", ["a"]) == {"a": port}


async def test_ports_over_the_control_socket(client: SupervisorClient) -> None:
    ports = await client.allocate_ports("global", ["etcd", "apiserver"])
    assert await client.allocate_ports("global", ["apiserver", "etcd", "metrics"]) != ports
    assert ports.items() <= (await client.allocate_ports("global", ["apiserver", "etcd", "metrics"])).items()
    await client.release_ports("global")
    await client.release_ports("global")


async def test_a_process_whose_port_is_taken_waits_and_names_the_holder(
    client: SupervisorClient, server_spec: MakeSpec
) -> None:
    spec = server_spec("g/a")
    with socket.create_server(("127.0.0.1", spec.ports[0])):
        await client.put(spec)

        async def names_the_holder() -> bool:
            [status] = await client.status("g/a")
            is_named = status.reason.startswith(f"port {spec.ports[0]} is taken by ")
            return status.state is State.BACKOFF and is_named and f"(pid {os.getpid()})" in status.reason

        await eventually(names_the_holder, "the holder of the port in the reason")
    await client.wait_ready("g/a", timeout=60)
