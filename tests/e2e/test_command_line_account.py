"""`kairship login`, `approve`, `whoami`, `token` and `logout`, as users type them."""

import asyncio
import json
import os
import re
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.ghippo_process import PASSWORD
from support.managed import World
from support.small_plane import SmallPlane, small_plane
from support.waiting import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

GOOD = "correct horse battery staple"


@dataclass(frozen=True)
class Typed:
    code: int
    out: str
    err: str


class Person:
    """A user's own computer."""

    def __init__(self, running: SmallPlane, folder: Path) -> None:
        self.running = running
        self.config = folder / "config"
        self._ca = folder / "ca.crt"
        self._ca.write_bytes(running.entrance.authority.certificate)
        self._environment = os.environ | {"XDG_CONFIG_HOME": str(self.config), "NO_COLOR": "1"}

    @property
    def server(self) -> tuple[str, ...]:
        return ("--server", self.running.entrance.rest_url, "--ca", str(self._ca))

    async def begins(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kairship", *words),
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def types(self, *words: str, lines: tuple[str, ...] = ()) -> Typed:
        process = await self.begins(*words)
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate("".join(f"{line}\n" for line in lines).encode())
        assert process.returncode is not None
        return Typed(process.returncode, out.decode(), err.decode())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SmallPlane]:
    async with small_plane(world.connection, tmp_path_factory.mktemp("plane")) as found:
        yield found


@pytest.fixture(scope="module")
def ann(running: SmallPlane, tmp_path_factory: pytest.TempPathFactory) -> Person:
    return Person(running, tmp_path_factory.mktemp("ann"))


async def test_who_is_not_signed_in_is_told_what_to_do(ann: Person) -> None:
    for command in ("whoami", "token", "logout"):
        typed = await ann.types(command)
        assert (typed.code, typed.out) == (8, "")
        assert "kairship login" in typed.err


async def test_a_password_is_asked_for_and_changed(ann: Person) -> None:
    wrong = await ann.types("login", *ann.server, "--user", "admin", lines=("not the password",))
    assert wrong.code == 1
    assert "name or the password is wrong" in wrong.err
    typed = await ann.types("login", *ann.server, "--user", "admin", "-o", "json", lines=(PASSWORD, GOOD))
    assert typed.code == 0, typed.err
    assert json.loads(typed.out)["user"]["name"] == "admin"
    kept = ann.config / "kairship" / "credentials.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert GOOD not in kept.read_text()
    assert "admin" in (await ann.types("whoami")).out


async def test_kubectl_is_given_a_token_that_is_good(ann: Person) -> None:
    typed = await ann.types("token")
    credential: Any = json.loads(typed.out)
    assert (credential["kind"], credential["apiVersion"]) == ("ExecCredential", "client.authentication.k8s.io/v1")
    token = credential["status"]["token"]
    assert (await ann.running.get("GET", "/current-user", token=token))["name"] == "admin"
    # Many commands at once renew the token, while the refresh token can be used only once.
    path = ann.config / "kairship" / "credentials.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"expires_at": 0}))
    results = await asyncio.gather(*(ann.types("token") for _ in range(3)))
    assert [result.code for result in results] == [0, 0, 0]
    [renewed] = {json.loads(result.out)["status"]["token"] for result in results}
    assert renewed != token


async def test_another_device_is_let_in_by_its_code(ann: Person, tmp_path: Path) -> None:
    laptop = Person(ann.running, tmp_path)
    process = await laptop.begins("login", *laptop.server)
    assert process.stderr is not None
    said = ""
    async with asyncio.timeout(PATIENCE):
        while not (code := re.search(r"kairship approve (\S+)", said)):
            said += (await process.stderr.readline()).decode()
    approved = await ann.types("approve", code[1])
    assert approved.code == 0, approved.err
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == 0
    assert "admin" in (await laptop.types("whoami")).out
    assert (await laptop.types("logout")).code == 0
    assert (await laptop.types("whoami")).code == 8
    assert (await ann.types("whoami")).code == 0


async def test_a_plane_that_is_not_trusted_gets_nothing(ann: Person, tmp_path: Path) -> None:
    typed = await ann.types("login", "--server", ann.running.entrance.rest_url, "--user", "admin", lines=(GOOD,))
    assert typed.code == 1
    assert "--ca" in typed.err
    plain = await ann.types("login", "--server", "http://127.0.0.1:1", "--user", "admin", lines=(GOOD,))
    assert plain.code == 2
