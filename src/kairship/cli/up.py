"""`kairship up`: from nothing to a running plane, or from a broken one to a healthy one."""

import asyncio
import shutil
from typing import Annotated

import typer

from kairship.cli.engine import build_missing
from kairship.cli.output import DataDir, Format, Output, console, print_json
from kairship.cli.progress import LiveReporter
from kairship.embedded import EmbeddedPlane, Home, Outcome, demo
from kairship.engine import Engine, Group


def up(
    data_dir: DataDir,
    members: Annotated[
        int,
        typer.Option(
            min=0, max=len(demo.MEMBERS), help="Member clusters of a new plane. Add more: `kairship member add`."
        ),
    ] = len(demo.MEMBERS),
    output: Output = Format.TABLE,
) -> None:
    """Start the plane, or repair it: engine, global cluster, a Karmada instance, member clusters, a demo."""
    asyncio.run(_up(Home(data_dir), members, output))


async def _up(home: Home, members: int, output: Format) -> None:
    with home.exclusive():
        engine = await Engine.find()
        if engine.folder is None:
            await build_missing([Group.PLANE])
        with LiveReporter() as reporter:
            outcome = await EmbeddedPlane(home, engine).up(reporter, demo.MEMBERS[:members])
    if output is Format.JSON:
        print_json(outcome)
    else:
        _summarise(home, engine, outcome)


def _summarise(home: Home, engine: Engine, outcome: Outcome) -> None:
    if outcome.already_running:
        console.print(f"\n[bold green]The plane is already running[/] and healthy, in {home.root}.")
    elif outcome.repaired:
        console.print(f"\n[bold green]The plane is healthy again[/]: restarted {', '.join(outcome.repaired)}.")
    else:
        console.print(f"\n[bold green]The plane is up[/] after {outcome.seconds:.1f} s, in {home.root}.")
    kubectl = shutil.which("kubectl") or str(engine.binary("kubectl"))
    kubectl = f"{kubectl} --kubeconfig {outcome.kubeconfig}"
    other = "" if home.is_default else f" --data-dir {home.root}"
    lines = [
        ("global cluster", outcome.global_server),
        ("instance demo", outcome.instance_server),
        ("members", ", ".join(outcome.members) or "none"),
        ("sign in", f"kubeconfig {outcome.kubeconfig} (contexts {', '.join(outcome.contexts)})"),
        ("try", f"{kubectl} --context demo get clusters,deployments"),
        ("look", f"kairship status{other}"),
        ("stop", f"kairship down{other}"),
    ]
    for name, value in lines:
        console.print(f"  [bold]{name:<15}[/] {value}", soft_wrap=True)
