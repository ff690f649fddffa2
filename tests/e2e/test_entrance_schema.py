"""What the OpenAPI document promises, held against a live server: requests made by schemathesis, replies checked."""

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance
from support.entrance_process import EntranceProcess
from support.managed import World
from support.small_plane import small_plane

OPENAPI = Path(__file__).parents[2] / "api/openapi/kairship.json"
SECONDS = 30.0
AT_LEAST = 30
EXAMPLES = 2
ANSWER_WITHIN = 30.0


async def test_replies_are_as_the_document_says(world: World, tmp_path: Path) -> None:
    """In a cluster where nobody acts on what such requests may create."""
    async with small_plane(world.connection, tmp_path) as running:
        checked = await asyncio.to_thread(walk, running.entrance, tmp_path / "entrance.crt")
    assert checked >= AT_LEAST


def walk(entrance: EntranceProcess, ca: Path) -> int:
    """As many operations as there is time for, others each time. Streams are left out: they have no end."""
    schema = schemathesis.openapi.from_dict(json.loads(OPENAPI.read_text()))
    options = {
        "base_url": entrance.rest_url,
        "headers": {"Authorization": f"Bearer {entrance.token}"},
        "verify": str(ca),
        "timeout": ANSWER_WITHIN,
    }
    checked, until = 0, time.monotonic() + SECONDS
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    random.shuffle(operations)
    for operation in operations:
        if time.monotonic() > until:
            break
        if not operation.path.endswith((":watch", ":export")):
            check(operation, options)
            checked += 1
    return checked


def check(operation: Any, options: dict[str, Any]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
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
