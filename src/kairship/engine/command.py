"""Runs a command with a timeout. If the caller stops waiting, the whole process group of the command is killed."""

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kairship.engine.errors import StepTimeoutError

_TAIL_LINES = 40
# go removes its work folders on SIGINT; after this time it is killed.
_GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Outcome:
    status: int
    stdout: str
    errors: str
    """The last lines of stderr."""


def ignore_line(_line: str) -> None:
    """Ignores a line of stderr."""


async def run(
    arguments: Sequence[str | Path],
    *,
    timeout: float,
    env: Mapping[str, str],
    cwd: Path | None = None,
    on_error_line: Callable[[str], None] = ignore_line,
) -> Outcome:
    process = await asyncio.create_subprocess_exec(
        *map(str, arguments),
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    tail: deque[str] = deque(maxlen=_TAIL_LINES)

    async def follow(stream: asyncio.StreamReader) -> None:
        async with aclosing(_lines(stream)) as lines:
            async for line in lines:
                tail.append(line)
                on_error_line(line)

    try:
        async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
            stdout = group.create_task(cast("asyncio.StreamReader", process.stdout).read())
            group.create_task(follow(cast("asyncio.StreamReader", process.stderr)))
            group.create_task(process.wait())
    except BaseException as error:
        # Whatever the reason is, the caller no longer waits. The leader may have exited while its children still run.
        await _end(process)
        if isinstance(error, TimeoutError):
            raise StepTimeoutError(command=" ".join(map(str, arguments)), seconds=timeout) from None
        raise
    return Outcome(
        status=process.returncode or 0, stdout=stdout.result().decode(errors="replace"), errors="\n".join(tail)
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    _signal_group(process, signal.SIGINT)
    try:
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        # This kills compilers that outlived go. It runs at once if the caller is cancelled a second time.
        _signal_group(process, signal.SIGKILL)
    await process.wait()


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


async def _lines(stream: asyncio.StreamReader) -> AsyncGenerator[str, None]:
    """The lines of a stream. They can have any length, while StreamReader's own iteration fails for long lines."""
    rest = b""
    while chunk := await stream.read(1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")
