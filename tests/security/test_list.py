"""Every test that the list of attacks names exists."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_attack_is_listed_with_tests_that_exist() -> None:
    text = (TESTS / "security" / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .*$", text, re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 27))
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", text)
    assert len(named) > len(rows)
    missing = [f"{file}::{name}" for file, name in named if not _exists(TESTS / file, name)]
    assert missing == []


def _exists(file: Path, name: str) -> bool:
    return file.exists() and re.search(rf"^(async )?def {name}\(", file.read_text(), re.MULTILINE) is not None
