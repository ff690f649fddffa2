"""kubectl against an instance directly, and through the entrance."""

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.engine import Engine
from kairship.kube import Connection
from support.waiting import PATIENCE

INSTANCE = "demo"
_AGE = re.compile(r"\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b|\b\d+[dhm]\b|<invalid>")


def ageless(printed: str) -> str:
    """Replaces ages, which differ from one second to the next."""
    return "\n".join(re.sub(r"\s+", " ", _AGE.sub("AGE", line)).rstrip() for line in printed.splitlines())


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def ageless(self) -> str:
        return ageless(self.out)


@dataclass
class Kubectl:
    binary: Path
    kubeconfig: Path
    environment: dict[str, str] = field(default_factory=dict)

    async def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE) -> Done:
        process = await self.start(*arguments, stdin=stdin is not None)
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(stdin.encode() if stdin is not None else None)
        finally:
            await end(process)
        return Done(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE) -> str:
        done = await self(*arguments, stdin=stdin, timeout=timeout)
        assert done.code == 0, f"{self.binary.name} {' '.join(arguments)}: {done.err}{done.out}"
        return done.out

    async def start(self, *arguments: str, stdin: bool = False) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self.binary,
            *arguments,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "HOME": str(self.kubeconfig.parent),
                "PATH": "/usr/bin:/bin",
                "KUBECONFIG": str(self.kubeconfig),
                **self.environment,
            },
        )


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


async def through_entrance(
    plane: EmbeddedPlane,
    engine: Engine,
    folder: Path,
    *,
    token: str | None = None,
    member: str | None = None,
    instance: str = INSTANCE,
) -> Kubectl:
    """Returns a kubectl for an instance or a member of it, as the administrator or with another token."""
    connection = await proxied(plane, token=token, member=member, instance=instance)
    return _kubectl(engine, folder / f"through-{member or instance}", connection)


async def proxied(
    plane: EmbeddedPlane, *, token: str | None = None, member: str | None = None, instance: str = INSTANCE
) -> Connection:
    """Returns a connection to the native proxy, as the administrator or with another token."""
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    below = f"clusters/{member}/proxy" if member else "proxy"
    return Connection(
        server=f"{entrance.server}/apis/kairship.io/v1alpha1/instances/{instance}/{below}",
        ca=Path(entrance.ca).read_bytes(),
        token=token or Path(entrance.token_file).read_text(),
    )


async def direct(plane: EmbeddedPlane, engine: Engine, folder: Path) -> Kubectl:
    """Returns a kubectl for the API server of the demo instance, as its administrator."""
    return _kubectl(engine, folder / "direct", await plane.instance_connection())


def _kubectl(engine: Engine, folder: Path, connection: Connection) -> Kubectl:
    folder.mkdir(exist_ok=True)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_bytes(connection.to_kubeconfig(name=INSTANCE, user="me"))
    return Kubectl(engine.binary("kubectl"), kubeconfig)
