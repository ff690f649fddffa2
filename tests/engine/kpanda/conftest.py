"""Container management with a global cluster for each module, whose tests run in one event loop."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from support.container_management import Management, management_of
from support.own_global import own_global

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Connection


@pytest.fixture(scope="module")
def home(plane: EmbeddedPlane, engine: Engine) -> Iterator[Connection]:
    """A global cluster in which nothing else runs."""
    with own_global(plane, engine) as connection:
        yield connection


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(home: Connection, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Management]:
    async with management_of(home, tmp_path_factory.mktemp("index")) as management:
        yield management


@pytest_asyncio.fixture(loop_scope="module")
async def kpanda(running: Management) -> AsyncIterator[Management]:
    """Container management without any registered cluster, before and after the test."""
    yield running
    await running.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def frankfurt(plane: EmbeddedPlane) -> Connection:
    return await plane.members.connection("frankfurt")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def second(plane: EmbeddedPlane) -> Connection:
    return await plane.members.connection(plane.members.specs()[-1].name)
