"""Fixtures of all tests. Whatever needs the engine shares one plane per run (`support.shared_plane`)."""

import asyncio
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import scratch, shared_plane
from support.entrance_process import entrance_of
from support.managed import ManagedInstance, World
from support.own_global import own_global
from support.people import People

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, Connection, kinds

TESTS = Path(__file__).parent
LONGEST_FIRST = ("faults", "engine", "e2e", "security", "contract", "unit")

# How long an example takes says more about a busy machine than about the code.
settings.register_profile("kairship", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kairship")


class Kube:
    """A real API server in which nothing acts by itself, for tests that bring their own objects and controllers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection


def pytest_configure(config: pytest.Config) -> None:
    # Ignored where a shell has put us into the background; processes that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        scratch.prefer_memory()
        shared_plane.prepare()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared_plane.discard()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, so that no worker ends long after the others. Within a module nothing is moved."""
    items.sort(key=lambda item: LONGEST_FIRST.index(item.path.relative_to(TESTS).parts[0]))


@pytest.fixture(scope="session")
def engine() -> Engine:
    return asyncio.run(Engine.find())


@pytest.fixture(scope="session")
def plane(engine: Engine) -> EmbeddedPlane:
    return shared_plane.bring_up(engine)


@pytest.fixture(scope="session")
def kube(plane: EmbeddedPlane, engine: Engine) -> Kube:
    return Kube(shared_plane.bring_up_quiet_cluster(plane, engine))


@pytest.fixture
async def namespace(kube: Kube) -> AsyncIterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    async with Client(kube.connection) as client:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
        yield name
        await client.delete(kinds.NAMESPACES, name)


@pytest.fixture(scope="module")
def world(plane: EmbeddedPlane, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """For a module that runs controller-managers of its own."""
    with own_global(plane, engine) as connection:
        yield World(connection, plane, engine, tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def managed(world: World) -> Iterator[ManagedInstance]:
    """One instance that goes through the whole module."""
    instance = ManagedInstance(world)
    yield instance
    asyncio.run(instance.clear_away())


@pytest.fixture
async def instance(managed: ManagedInstance) -> AsyncIterator[ManagedInstance]:
    async with Client(managed.world.connection) as client:
        managed.client = client
        yield managed


@pytest.fixture
async def people(plane: EmbeddedPlane) -> AsyncIterator[People]:
    """Of the shared plane; they are gone after the test."""
    async with entrance_of(plane) as admin:
        found = People(admin)
        yield found
        await found.clear_away()
