"""Fixtures of all tests. Whatever needs the engine shares one plane per run (`support.shared_plane`)."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
from support import shared_plane

from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.kube import Client, Connection, kinds


class Kube:
    """A real API server in which nothing acts by itself, for tests that bring their own objects and controllers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared_plane.prepare()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shared_plane.discard()


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
