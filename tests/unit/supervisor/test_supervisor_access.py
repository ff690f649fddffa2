"""Access control: lease terms and peer credentials."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kairship.supervisor import ProcessSpec, StaleTerm, SupervisorClient, Term
from kairship.supervisor.fence import Fence
from kairship.supervisor.server import is_trusted

MakeSpec = Callable[..., ProcessSpec]

# Run as another user: requests the status and prints the HTTP status line of the reply.
ASK = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(b"GET /v1/processes HTTP/1.1\\r\\nHost: supervisor\\r\\n\\r\\n")
    print(connection.recv(65536).decode().splitlines()[0])
"""


async def test_an_older_term_changes_nothing(client: SupervisorClient, data_dir: Path, shell_spec: MakeSpec) -> None:
    older, newer, other = (
        SupervisorClient(data_dir, term) for term in (Term("lifecycle", 1), Term("lifecycle", 2), Term("other", 1))
    )
    await older.put(shell_spec("g/a", "sleep 1000"))
    await newer.put(shell_spec("g/b", "sleep 1000"))

    changes = (
        older.put(shell_spec("g/c", "sleep 1000")),
        older.delete("g/a"),
        older.delete_group("g"),
        older.stop("g"),
        older.start("g"),
        older.restart("g"),
        older.allocate_ports("g", ["a"]),
        older.release_ports("g"),
        older.shutdown(),
    )
    for change in changes:
        with pytest.raises(StaleTerm, match="term 1 of lifecycle is over: term 2 has called since"):
            await change
    assert [status.name for status in await older.status()] == ["g/a", "g/b"]

    await newer.delete("g/a")
    await other.put(shell_spec("g/a", "sleep 1000"))
    await client.delete("g/a")


def test_terms_are_remembered(tmp_path: Path) -> None:
    path = tmp_path / "terms.json"
    Fence(path).admit(Term("lifecycle", 7))
    with pytest.raises(StaleTerm):
        Fence(path).admit(Term("lifecycle", 6))
    Fence(path).admit(Term("lifecycle", 7))


def test_only_the_own_user_and_root_are_trusted() -> None:
    assert is_trusted(0)
    assert is_trusted(os.geteuid())
    assert not is_trusted(os.geteuid() + 1)


async def test_what_the_supervisor_keeps_is_for_its_owner_only(
    client: SupervisorClient, data_dir: Path, shell_spec: MakeSpec
) -> None:
    await client.put(shell_spec("g/a", "sleep 1000"))
    await client.wait_ready("g/a", timeout=60)
    await client.allocate_ports("g", ["a"])
    await SupervisorClient(data_dir, Term("scope", 1)).start("g/a")
    kept = {str(path.relative_to(data_dir)): stat.S_IMODE(path.stat().st_mode) for path in data_dir.rglob("*")}
    assert kept == {
        "logs": 0o700,
        "logs/g": 0o700,
        "logs/g/a.log": 0o600,
        "supervisor": 0o700,
        "supervisor/control.sock": 0o600,
        "supervisor/ports.json": 0o600,
        "supervisor/processes": 0o700,
        "supervisor/processes/g@a.json": 0o600,
        "supervisor/running.json": 0o600,
        "supervisor/terms.json": 0o600,
    }


class TestDeepDataDirectory:
    @pytest.fixture
    def data_dir(self, tmp_path: Path) -> Path:
        return tmp_path / ("deep" * 50) / "data"

    async def test_a_path_longer_than_a_socket_address_will_do(self, client: SupervisorClient) -> None:
        assert (await client.health()).pid == os.getpid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user; is_trusted is tested above")
class TestAnotherUser:
    @pytest.fixture
    def data_dir(self) -> Iterator[Path]:
        """A directory outside of pytest's own, which other users cannot enter."""
        with TemporaryDirectory() as directory:
            Path(directory).chmod(0o755)
            yield Path(directory)

    async def ask(self, data_dir: Path) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-I", "-S", "-c", ASK, str(data_dir / "supervisor/control.sock")]
        return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=20, check=False)

    @pytest.mark.usefixtures("client")
    async def test_cannot_reach_the_socket(self, data_dir: Path) -> None:
        answer = await self.ask(data_dir)
        assert "PermissionError" in answer.stderr

    @pytest.mark.usefixtures("client")
    async def test_is_refused_even_with_loosened_permissions(self, data_dir: Path) -> None:
        (data_dir / "supervisor").chmod(0o755)
        (data_dir / "supervisor/control.sock").chmod(0o666)
        answer = await self.ask(data_dir)
        assert answer.stdout.strip() == "HTTP/1.1 403 Forbidden", answer.stderr
