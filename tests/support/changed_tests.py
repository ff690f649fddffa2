"""Names the tests that an edit can touch: `python -m support.changed_tests [BASE]` prints their paths.

An edit is every file that differs from the commit BASE (the last commit unless it is named), untracked files included.
A unit or engine test is printed if it was edited, or if it imports an edited module of `kairship` or of
`tests/support`, directly or through other modules. Tests that ask a whole plane over its public interfaces
(`_WHOLE_PLANE`) do not import what its processes run, so an edit of any module that those processes import selects
them. An edit of anything else that tests read (generated files, the engine's pins) selects all tests.
"""

import ast
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
_WHOLE_PLANE = ("e2e", "faults", "security")
_COMMANDS = "kairship.cli"
"""The package whose modules `kairship` imports by name, one for each command."""
_ALL = ["tests"]
_IRRELEVANT = {".md", ".svg", ".png"}


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    print("\n".join(tests_touched_by(edited_since(base))))  # noqa: T201 - that is what the command is for


def edited_since(base: str) -> list[Path]:
    differing = _git("diff", "--name-only", "--diff-filter=ACMRD", base)
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return [Path(line) for line in (*differing, *untracked)]


def tests_touched_by(edited: Iterable[Path]) -> list[str]:
    """Paths for pytest, relative to the root of the checkout."""
    files = _modules()
    names = {path: name for name, path in files.items()}
    changed: set[str] = set()
    for path in edited:
        if path in names:
            changed.add(names[path])
        elif _is_read_by_any(path):
            return _ALL
    if "conftest" in changed:
        return _ALL
    touched = _importers(changed, {name: _imports(name, ROOT / path, files) for name, path in files.items()})
    return sorted(str(files[name]) for name in touched if files[name].name.startswith("test_"))


def _is_read_by_any(path: Path) -> bool:
    """Whether any test may depend on a file that is no module, or no longer one."""
    inputs = path.parts[0] in {"src", "tests", "api", "engine", "deploy"} and path.suffix not in _IRRELEVANT
    return inputs or path.name in {"pyproject.toml", "requirements.txt"}


def _modules() -> dict[str, Path]:
    """Every module of the project by its dotted name."""
    found = {}
    for root in (ROOT / "src", TESTS):
        for path in root.rglob("*.py"):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path.relative_to(ROOT)
    return found


def _imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the project that this one needs: those it imports, the packages around it, and its conftest."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    wanted = {".".join(package[:depth]) for depth in range(1, len(package) + 1)}
    wanted.update(f"{'.'.join(package[:depth])}.conftest" for depth in range(1, len(package) + 1))
    if package[:1] and package[0] in _WHOLE_PLANE:
        wanted.update(each for each in known if each.startswith(_COMMANDS))
    if name == f"{_COMMANDS}.app":
        wanted.update(each for each in known if each.startswith(_COMMANDS))
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            wanted.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            wanted.add(module)
            wanted.update(f"{module}.{alias.name}" for alias in node.names)
    return wanted & known.keys() - {name}


def _importers(changed: set[str], imports: dict[str, set[str]]) -> set[str]:
    """The changed modules and everything that needs one of them."""
    importers: dict[str, set[str]] = {}
    for name, needed in imports.items():
        for each in needed:
            importers.setdefault(each, set()).add(name)
    found, queue = set(changed), deque(changed)
    while queue:
        for name in importers.get(queue.popleft(), set()) - found:
            found.add(name)
            queue.append(name)
    return found


def _git(*arguments: str) -> Iterator[str]:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return (line for line in ran.stdout.splitlines() if line)


if __name__ == "__main__":
    main()
