"""kubectl as people use it: against an instance directly, and through the entrance."""

import asyncio
import re
import ssl
import urllib.request
import json
from dataclasses import dataclass, field
from pathlib import Path

from kairship.embedded import EmbeddedPlane, roles
from kairship.kube import Connection
from support.answering_pods import let_pods_answer

PATIENCE = 40.0
_AGE = re.compile(r"\b(\d+d)?(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b|\b\d+[dhm]\b|<invalid>")


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def ageless(self) -> str:
        """Without what differs from one second to the next."""
        lines = (re.sub(r"\s+", " ", _AGE.sub("AGE", line)).rstrip() for line in self.out.splitlines())
        return "\n".join(lines)


@dataclass
class Kubectl:
    binary: Path
    kubeconfig: Path
    context: str
    environment: dict[str, str] = field(default_factory=dict)

    async def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE) -> Done:
        process = await self.start(*arguments, stdin=stdin is not None)
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(stdin.encode() if stdin is not None else None)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Done(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE) -> str:
        done = await self(*arguments, stdin=stdin, timeout=timeout)
        assert done.code == 0, f"kubectl {' '.join(arguments)}: {done.err}{done.out}"
        return done.out

    async def start(self, *arguments: str, stdin: bool = False) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self.binary,
            f"--kubeconfig={self.kubeconfig}",
            f"--context={self.context}",
            *arguments,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"HOME": str(self.kubeconfig.parent), "PATH": "/usr/bin:/bin", **self.environment},
        )
