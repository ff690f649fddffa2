"""The services over the shared plane. Each module has its own, because its tests run in one event loop."""

from collections.abc import AsyncIterator

import pytest_asyncio
from support.services import Api, services_of

from kairship.embedded import EmbeddedPlane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(plane: EmbeddedPlane) -> AsyncIterator[Api]:
    async with services_of(plane) as api:
        yield api
