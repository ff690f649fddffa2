"""The documents name files, module names and words as they are."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "kairship"
LARGEST_PACKAGE = 20


def modules() -> list[Path]:
    return [path for path in SOURCES.rglob("*.py") if "gen" not in path.relative_to(SOURCES).parts]


def test_every_path_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", (ROOT / "docs/architecture.md").read_text()))
    assert len(named) > 60
    assert [path for path in sorted(named) if not (SOURCES / path).is_file()] == []


def test_every_package_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`kairship\.([a-z_.]+)`", (ROOT / "docs/architecture.md").read_text()))
    missing = [name for name in sorted(named) if not list(SOURCES.glob(f"{name.replace('.', '/')}*"))]
    assert missing == []


def test_no_package_has_more_modules_than_a_reader_takes_in() -> None:
    sizes = Counter(path.parent for path in modules())
    assert {str(folder.relative_to(SOURCES)): size for folder, size in sizes.items() if size > LARGEST_PACKAGE} == {}


def test_a_module_name_that_is_used_twice_means_one_thing() -> None:
    """The glossary lists every name that several modules have, with the one meaning that they share."""
    page = (ROOT / "docs/glossary.md").read_text()
    section = page.split("## Module names", 1)[1]
    listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    used = Counter(path.stem for path in modules() if path.stem not in {"__init__", "__main__"})
    several = sorted(name for name, times in used.items() if times > 1)
    assert sorted(listed) == several
