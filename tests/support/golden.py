"""Golden replies: the JSON of each operation, kept in `tests/contract/golden`, without what differs from run to run.

A reply that changes is a change for everybody who reads it. If it is meant, `KAIRSHIP_WRITE_GOLDEN=1 pytest …` writes
the files anew, and the difference is there to be read in the commit.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

from protobuf import Message

from kairship.wire import write

FOLDER = Path(__file__).parent.parent / "contract" / "golden"
WRITE = "KAIRSHIP_WRITE_GOLDEN"

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_CHANGING = {"resourceVersion": "<version>", "creationTimestamp": "<time>", "deletionTimestamp": "<time>"}


def compare(operation: str, reply: Message[Any], *, without: frozenset[str] = frozenset(), **names: str) -> None:
    """Hold a reply against its golden file. `names` are names of this run, by what stands for them in the file.

    `without` are fields that others write at the same time, as controllers do with a status.
    """
    found = _steady(json.loads(write(reply)), names, without)
    path = FOLDER / f"{operation}.json"
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    assert path.exists(), f"there is no {path.name}: write it with {WRITE}=1"
    assert found == json.loads(path.read_text()), f"the reply of {operation} is not as it was"


def _steady(value: Any, names: dict[str, str], without: frozenset[str]) -> Any:
    match value:
        case dict():
            return {
                key: _CHANGING[key]
                if key in _CHANGING and part not in ("", "0", None)
                else _steady(part, names, without)
                for key, part in value.items()
                if key not in without
            }
        case list():
            return [_steady(part, names, without) for part in value]
        case str() if value.startswith("{"):
            return json.dumps(_steady(json.loads(value), names, without), sort_keys=True)
        case str():
            for stands_for, name in names.items():
                value = value.replace(name, f"<{stands_for}>")
            return _PORT.sub("<address>", _TIME.sub("<time>", _UID.sub("<uid>", value)))
        case _:
            return value
