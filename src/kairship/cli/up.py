"""`kairship up`: from nothing to a running plane, or from a broken one to a healthy one."""

import asyncio
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kairship.cli.engine import build_missing
from kairship.cli.output import DataDir, Format, Output, bold, print_json, progress_console, say
from kairship.cli.progress import LiveReporter
from kairship.embedded import EmbeddedPlane, Home, Outcome, demo
from kairship.engine import Engine, Group

_ALL = len(demo.MEMBERS)


def up(
    data_dir: DataDir,
    members: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_ALL,
            show_default=str(_ALL),
            help="Member clusters of a new plane. Change them later with `kairship member`.",
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Start the plane, or repair it: engine, global cluster, a Karmada instance, member clusters, a demo."""
    home = Home(data_dir)
    try:
        engine, outcome = asyncio.run(_up(home, _ALL if members is None else members))
    except KeyboardInterrupt:
        progress_console.print(
            f"Interrupted. `kairship up{_elsewhere(home)}` goes on, `kairship down{_elsewhere(home)}` stops what runs.",
            markup=False,
            soft_wrap=True,
        )
        raise
    if members not in (None, len(outcome.members)):
        progress_console.print("This plane has members of its own already: --members is for new planes.")
    if output is Format.JSON:
        print_json(outcome)
    else:
        _summarise(home, engine, outcome)


async def _up(home: Home, members: int) -> tuple[Engine, Outcome]:
    with home.exclusive():
        engine = await Engine.find()
        if engine.folder is None:  # binaries that somebody brought are not ours to add to
            await build_missing([Group.PLANE])
        with LiveReporter() as reporter:
            return engine, await EmbeddedPlane(home, engine).up(reporter, demo.MEMBERS[:members])


def _summarise(home: Home, engine: Engine, outcome: Outcome) -> None:
    if outcome.already_running:
        headline, rest = "The plane is already running", f" and healthy, in {home.root}."
    elif outcome.repaired:
        headline, rest = "The plane is healthy again", f": started {', '.join(outcome.repaired)}."
    else:
        headline, rest = "The plane is up", f" after {outcome.seconds:.1f} s, in {home.root}."
    say("\n", Text(headline, style="bold green"), rest)
    elsewhere = _elsewhere(home)
    lines = [
        ("API", f"{outcome.entrance.server}, to be tried at {outcome.entrance.server}/docs"),
        ("sign in", _sign_in(outcome)),
        ("token", Path(outcome.entrance.token_file).read_text(encoding="ascii")),
        ("call it", _curl(outcome)),
        ("gRPC", outcome.entrance.grpc),
        ("global cluster", outcome.global_server),
        ("instance demo", outcome.instance_server),
        ("members", ", ".join(outcome.members) or "none"),
        *(
            (f"  {name}", f"stopped; start it: kairship member start {name}{elsewhere}")
            for name in outcome.stopped_members
        ),
        ("kubectl", f"export KUBECONFIG={shlex.quote(outcome.kubeconfig)}"),
        ("contexts", ", ".join(outcome.contexts)),
        ("try", f"{_kubectl(engine, outcome)} --context demo get clusters,deployments"),
        ("look", f"kairship status{elsewhere}"),
        ("stop", f"kairship down{elsewhere}"),
    ]
    for name, value in lines:
        say(bold(f"  {name:<15} "), value)


def _sign_in(outcome: Outcome) -> str:
    if outcome.entrance.password_file is None:
        return "as admin, with the password that you have chosen"
    try:
        password = Path(outcome.entrance.password_file).read_text(encoding="ascii")
    except FileNotFoundError:  # changed at this moment
        return "as admin, with the password that you have chosen"
    return f"as admin, with the password {password}, which must be changed"


def _kubectl(engine: Engine, outcome: Outcome) -> str:
    """Works when pasted into any shell, whatever KUBECONFIG is there."""
    program = "kubectl" if shutil.which("kubectl") else str(engine.binary("kubectl"))
    return shlex.join([program, "--kubeconfig", outcome.kubeconfig])


def _curl(outcome: Outcome) -> str:
    """The token comes from its file, into curl's input: arguments are seen by everybody, and stay in histories."""
    entrance = outcome.entrance
    return (
        f'echo "Authorization: Bearer $(cat {shlex.quote(entrance.token_file)})" |'
        f" curl --cacert {shlex.quote(entrance.ca)} -H @- {entrance.server}/apis/kairship.io/v1alpha1/instances"
    )


def _elsewhere(home: Home) -> str:
    return "" if home.is_default else f" --data-dir {shlex.quote(str(home.root))}"
