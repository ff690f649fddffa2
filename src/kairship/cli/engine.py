"""`kairship engine`: builds, lists and copies the binaries of Kubernetes, Karmada, etcd and kwok."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kairship import engine as engine_package
from kairship.cli.output import Format, Output, print_json, print_table, progress_console, say, size
from kairship.engine import Engine, Event, Group
from kairship.engine.progress import Building, Built, Downloading, InstallingGo, Packing, Waiting

app = typer.Typer(help="Build, list, pack and unpack the engine's binaries.", no_args_is_help=True)

Groups = Annotated[list[Group], typer.Option("--group", "-g", help="A group of binaries. Repeatable.")]


@app.command()
def build(group: Groups = [Group.PLANE], output: Output = Format.TABLE) -> None:  # noqa: B006 -- typer copies it
    """Build the binaries that are missing. A build that was interrupted continues."""
    begin = time.monotonic()
    built = asyncio.run(build_missing(group))
    if output is Format.JSON:
        print_json({"built": built, "seconds": round(time.monotonic() - begin, 1)})
    elif not built:
        say("All binaries have been built already.")


@app.command(name="list")
def list_components(output: Output = Format.TABLE) -> None:
    """Show every binary, its version, and whether it has been built."""
    found = asyncio.run(Engine.find())
    components = found.components()
    if output is Format.JSON:
        print_json(components)
        return
    print_table(
        ("BINARY", "VERSION", "GROUP", "SIZE"),
        [
            (item.name, item.version, item.group.value, "not built" if item.size is None else size(item.size))
            for item in components
        ],
    )
    say(f"\nin {found.cache.engine}{f' and {found.folder}' if found.folder else ''}")


@app.command()
def pack(
    archive: Annotated[Path, typer.Argument(help="The archive to write, e.g. engine.tar.gz.")],
    group: Groups = [Group.PLANE],  # noqa: B006 -- typer copies it
    output: Output = Format.TABLE,
) -> None:
    """Write built binaries into an archive, so that another machine need not build them."""
    with _progress() as show:
        engine_package.pack(archive, groups=group, progress=show)
    if output is Format.JSON:
        print_json({"archive": str(archive), "bytes": archive.stat().st_size})
    else:
        say(f"Wrote {archive} ({size(archive.stat().st_size)}).")
        say(f"On the other machine, run `kairship engine unpack {archive.name}`.")


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(help="An archive that `kairship engine pack` wrote.")],
    output: Output = Format.TABLE,
) -> None:
    """Install binaries from an archive, after checking that they are undamaged and have the pinned versions."""
    with _progress() as show:
        engine_package.unpack(archive, progress=show)
    if output is Format.JSON:
        print_json({"archive": str(archive)})
    else:
        say("The binaries are installed.")


async def build_missing(groups: Sequence[Group]) -> list[str]:
    """Build the missing binaries with progress on the terminal. Returns the names of those that were built."""
    built: list[str] = []
    with _progress() as show:

        def record(event: Event) -> None:
            if isinstance(event, Built):
                built.append(event.binary)
            show(event)

        await engine_package.build(groups, progress=record)
    return built


@contextmanager
def _progress() -> Iterator[engine_package.Progress]:
    """A progress bar. It is not shown before the first event, because usually there is nothing to build."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=progress_console,
    )
    task = bar.add_task("", total=None, count="", start=True, visible=False)

    def show(event: Event) -> None:
        description, done, total, count = _describe(event)
        if progress_console.is_terminal:
            bar.start()
            bar.update(task, description=description, completed=done, total=total, count=count, visible=True)
        elif not isinstance(event, Packing | Downloading) or (isinstance(event, Downloading) and not event.fetched):
            progress_console.print(f"{description}  {count}".rstrip(), soft_wrap=True, markup=False)

    try:
        yield show
    finally:
        bar.stop()


def _describe(event: Event) -> tuple[str, float, float | None, str]:
    match event:
        case Waiting(pid):
            return f"waiting for another build (pid {pid or 'unknown'})", 0, None, ""
        case InstallingGo(version):
            return f"installing Go {version}", 0, None, ""
        case Downloading(module, fetched, latest):
            return f"downloading sources of {module}", 0, None, f"{fetched} modules {latest}"
        case Building():
            total = event.done + event.left
            text = f"building {event.binary} {event.version}"
            return text, event.done, total, f"{event.done} done, {event.left} left, {event.elapsed:.0f} s"
        case Built():
            total = event.done + event.left
            text = f"built {event.binary} {event.version} in {event.seconds:.0f} s"
            return text, event.done, total, f"{event.done} done, {event.left} left, {event.elapsed:.0f} s"
        case Packing():
            return event.path, event.done_bytes, event.total_bytes, size(event.done_bytes)
