"""The entrance of the plane, and clients of the API servers behind it that prepare what is requested."""

import uuid
from collections.abc import AsyncIterator

import pytest
from support import entrance
from support.entrance_process import entrance_of

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, kinds


@pytest.fixture
def own() -> str:
    """A unique part of all names of a test."""
    return f"g{uuid.uuid4().hex[:7]}"


@pytest.fixture
async def client(plane: EmbeddedPlane) -> AsyncIterator[entrance.Client]:
    async with entrance_of(plane) as client:
        yield client


@pytest.fixture
async def world(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    """A client of the global cluster."""
    async with Client(await plane.global_connection()) as client:
        yield client


@pytest.fixture
async def demo(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    """A client of the demo instance."""
    async with Client(await plane.instance_connection()) as client:
        yield client


@pytest.fixture
async def namespace(demo: Client, own: str) -> AsyncIterator[str]:
    """A namespace of the demo instance."""
    name = f"shop-{own}"
    await demo.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    yield name
    await demo.delete(kinds.NAMESPACES, name)
