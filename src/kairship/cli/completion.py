"""Shell completion of names. It reads files, so it is fast and works while the plane is down."""

from pathlib import Path

import typer

from kairship.embedded import Home, default_home, member_names
from kairship.supervisor.paths import Layout

SUPERVISOR = "supervisor"


def log_names(root: Path) -> list[str]:
    """The name of every process that has written a log, and of the supervisor."""
    layout = Layout.of(root)
    processes = [f"{path.parent.name}/{path.stem}" for path in layout.logs.glob("*/*.log")]
    return sorted(processes) + ([SUPERVISOR] if layout.own_log.exists() else [])


def complete_process(context: typer.Context, incomplete: str) -> list[str]:
    return [name for name in log_names(_root(context)) if name.startswith(incomplete)]


def complete_member(context: typer.Context, incomplete: str) -> list[str]:
    return sorted(name for name in member_names(Home(_root(context)).planes) if name.startswith(incomplete))


def _root(context: typer.Context) -> Path:
    chosen = context.params.get("data_dir")
    return Home(Path(chosen) if chosen else default_home()).root
