"""Fixtures of the attacks on the running plane."""

from collections.abc import AsyncIterator

import pytest
from support.entrance_process import entrance_of
from support.people import People, register

from kairship.embedded import EmbeddedPlane
from kairship.kube import Client


@pytest.fixture
async def people(plane: EmbeddedPlane) -> AsyncIterator[People]:
    """People of the shared plane, where roles can be bound on the demo instance. They are gone after the test."""
    async with entrance_of(plane) as admin, Client(await plane.global_connection()) as client:
        await register(client, "demo")
        found = People(admin)
        yield found
        await found.clear_away()
