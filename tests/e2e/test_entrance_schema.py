"""A live server keeps the promises of the OpenAPI document: schemathesis generates requests and checks the replies.

An ordinary run takes a sample of the operations, the same each time; a soak takes all of them, with other requests.
"""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from support.entrance_process import EntranceProcess
from support.managed import World
from support.small_plane import small_plane
from support.soak import SOAK

OPENAPI = Path(__file__).parents[2] / "api/openapi/kairship.json"
EXAMPLES = 2
SAMPLE = 40
ANSWER_WITHIN = 30.0


async def test_replies_are_as_the_document_says(world: World, tmp_path: Path) -> None:
    """The plane has no controllers that would act on the objects that such requests create."""
    async with small_plane(world.connection, tmp_path) as running:
        await asyncio.to_thread(walk, running.entrance, tmp_path / "entrance.crt")


def walk(entrance: EntranceProcess, ca: Path) -> None:
    """Streams are left out, because they do not end."""
    schema = schemathesis.openapi.from_dict(json.loads(OPENAPI.read_text()))
    options = {
        "base_url": entrance.rest_url,
        "headers": {"Authorization": f"Bearer {entrance.token}"},
        "verify": str(ca),
        "timeout": ANSWER_WITHIN,
    }
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    ending = [operation for operation in operations if not operation.path.endswith((":watch", ":export"))]
    for operation in ending if SOAK else random.Random(SAMPLE).sample(ending, SAMPLE):  # noqa: S311 - which, not keys
        check(operation, options)


def check(operation: Any, options: dict[str, Any]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=not SOAK,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def holds(case: Any) -> None:
        reply = case.call(**options)
        assert reply.status_code < 500 or reply.status_code in (501, 503), reply.text
        case.validate_response(reply, checks=[response_schema_conformance, content_type_conformance])

    holds()
