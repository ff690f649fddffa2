"""The examples in docs/api.md work: they are run in order, and their output is compared with the page.

A block of `bash` or `python` is run. A block of `text` after it must be found in its output: each line in turn, where …
stands for any text. Variables that a block defines in the shell are available to later blocks. A block that changes
nothing is run again until it prints that: it may read an index that has not heard of a change yet, or a list in which
other tests have something at the moment.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.not_yet import NotYet
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane, plane_processes
from kairship.engine import Engine
from kairship.kube import Client, kinds

PAGE = Path(__file__).parents[2] / "docs/api.md"
CREATED = "storefront"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
WRITES = re.compile(r"--(data|request)\b")
TIME = re.compile(r"(?<=-max-time )\d+")
"""The seconds for which an example reads a stream that does not end."""


@dataclass(frozen=True)
class Example:
    line: int
    language: str
    text: str
    promised: tuple[str, ...]

    @property
    def only_reads(self) -> bool:
        return WRITES.search(self.text) is None

    def with_more_time(self) -> "Example":
        return replace(self, text=TIME.sub(lambda found: str(2 * int(found[0])), self.text))


def examples(page: str) -> Iterator[Example]:
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] not in ("bash", "python"):
            continue
        adjacent = following is not None and following.start() == block.end() and following[1] == "text"
        promised = following[2].splitlines() if following is not None and adjacent else []
        yield Example(page.count("\n", 0, block.start()) + 1, block[1], block[2], tuple(promised))


def missing(promised: tuple[str, ...], output: str) -> str | None:
    """The first promised line that is missing from the output after the lines before it."""
    lines = iter(output.splitlines())
    for promise in promised:
        pattern = re.compile(".*".join(map(re.escape, promise.split("…"))))
        if not any(pattern.fullmatch(line) for line in lines):
            return promise
    return None


class Reader:
    """A shell that runs the examples of the page."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder
        self._functions = folder / "functions"
        self._functions.touch()

    async def run(self, example: Example) -> tuple[int, str]:
        """The exit code and the output."""
        if example.language == "python":
            return await self._execute(sys.executable, "-W", "error", "-c", example.text)
        keep = f"declare -f > {self._functions}"
        return await self._execute("bash", "-euo", "pipefail", "-c", f". {self._functions}\n{example.text}\n{keep}")

    async def _execute(self, *argv: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self._folder,
            env=self._environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            output, _ = await process.communicate()
        return await process.wait(), output.decode()


@pytest.fixture
async def reader(plane: EmbeddedPlane, engine: Engine, tmp_path: Path) -> AsyncIterator[Reader]:
    entrance = await plane_processes.ensure_entrance(plane.supervisor, plane.home)
    tools = (Path(sys.executable).parent, engine.binary("grpcurl").parent)
    environ = {
        "KAIRSHIP_API": entrance.server,
        "KAIRSHIP_GRPC": entrance.grpc,
        "KAIRSHIP_CA": entrance.ca,
        "KAIRSHIP_TOKEN_FILE": entrance.token_file,
        "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
    }
    yield Reader(environ, tmp_path)
    async with Client(await plane.instance_connection()) as instance:
        for kind in (kinds.DEPLOYMENTS, kinds.PROPAGATION_POLICIES):
            await instance.delete(kind, CREATED, namespace="default", missing_ok=True)


async def test_the_examples_do_what_the_page_says(reader: Reader) -> None:
    found = list(examples(PAGE.read_text()))
    assert {example.language for example in found} == {"bash", "python"}
    for example in found:
        if example.only_reads:
            await eventually(Repeated(reader, example), f"what docs/api.md:{example.line} promises")
        else:
            assert (problem := await difference(reader, example)) is None, problem


class Repeated:
    """An example that is run again and again, with more time for streams each time."""

    def __init__(self, reader: Reader, example: Example) -> None:
        self._reader = reader
        self._example = example

    async def __call__(self) -> NotYet | bool:
        problem = await difference(self._reader, self._example)
        self._example = self._example.with_more_time()
        return problem is None or NotYet(problem)


async def difference(reader: Reader, example: Example) -> str | None:
    """How what an example did differs from what the page says."""
    code, output = await reader.run(example)
    where = f"docs/api.md:{example.line}"
    if code != 0:
        return f"{where} ended with {code}:\n{output}"
    lost = missing(example.promised, output)
    return None if lost is None else f"{where} did not print {lost!r}:\n{output}"


@pytest.mark.parametrize(
    ("promised", "lost"),
    [
        (["one", "two"], None),
        (["o…e", "…"], None),
        (["two", "one"], "one"),
        (["on"], "on"),
        (["o.e"], "o.e"),
    ],
)
def test_what_is_promised_must_be_printed(promised: Sequence[str], lost: str | None) -> None:
    assert missing(tuple(promised), "zero\none\ntwo\n") == lost
