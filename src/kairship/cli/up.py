"""`kairship up`: starts the plane, or repairs it."""

import asyncio
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kairship.cli.engine import build_missing
from kairship.cli.options import reserved_namespaces
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
            help="The number of member clusters of a new plane. Change them later with `kairship member`.",
        ),
    ] = None,
    reserve_namespace: Annotated[
        list[str] | None,
        typer.Option(
            help="Reserve this namespace of every instance and member for Instance Admins, as kube-system is. "
            "Repeatable. The names replace those of an earlier `up`; without any, those stay reserved."
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Start the plane, or repair it: engine, global cluster, a Karmada instance, member clusters and a demo."""
    home, reserved = Home(data_dir), reserved_namespaces(reserve_namespace)
    try:
        engine, outcome = asyncio.run(_up(home, _ALL if members is None else members, reserved))
    except KeyboardInterrupt:
        progress_console.print(
            f"Interrupted. Continue with `kairship up{_data_dir_flag(home)}`, "
            f"or stop what runs with `kairship down{_data_dir_flag(home)}`.",
            markup=False,
            soft_wrap=True,
        )
        raise
    if members not in (None, len(outcome.members)):
        progress_console.print(
            "The members of this plane were not changed: --members is for new planes. Use `kairship member` instead.",
            soft_wrap=True,
        )
    if output is Format.JSON:
        print_json(outcome)
    else:
        _summarise(home, engine, outcome)


async def _up(home: Home, members: int, reserved: tuple[str, ...]) -> tuple[Engine, Outcome]:
    with home.exclusive():
        engine = await Engine.find()
        if engine.folder is None:  # KAIRSHIP_ENGINE_DIR belongs to the user, and nothing is built into it
            await build_missing([Group.PLANE])
        with LiveReporter() as reporter:
            plane = EmbeddedPlane(home, engine)
            return engine, await plane.up(reporter, demo.MEMBERS[:members], reserved_namespaces=reserved)


def _summarise(home: Home, engine: Engine, outcome: Outcome) -> None:
    if outcome.already_running:
        headline, rest = "The plane is already running", f" and healthy, in {home.root}."
    elif outcome.repaired:
        headline, rest = "The plane is healthy again", f": started {', '.join(outcome.repaired)}."
    else:
        headline, rest = "The plane is up", f" after {outcome.seconds:.1f} s, in {home.root}."
    say("\n", Text(headline, style="bold green"), rest)
    data_dir_flag = _data_dir_flag(home)
    lines = [
        ("API", f"{outcome.entrance.server}, documented at {outcome.entrance.server}/docs"),
        ("sign in", _sign_in(outcome)),
        ("token", Path(outcome.entrance.token_file).read_text(encoding="ascii")),
        ("call it", _curl(outcome)),
        ("gRPC", outcome.entrance.grpc),
        ("global cluster", outcome.global_server),
        ("instance demo", outcome.instance_server),
        ("members", ", ".join(outcome.members) or "none"),
        *(
            (f"  {name}", f"stopped; start it with: kairship member start {name}{data_dir_flag}")
            for name in outcome.stopped_members
        ),
        ("kubectl", f"export KUBECONFIG={shlex.quote(outcome.kubeconfig)}"),
        ("contexts", ", ".join(outcome.contexts)),
        ("try", f"{_kubectl(engine, outcome)} --context demo get clusters,deployments"),
        ("status", f"kairship status{data_dir_flag}"),
        ("stop", f"kairship down{data_dir_flag}"),
    ]
    for name, value in lines:
        say(bold(f"  {name:<15} "), value)


def _sign_in(outcome: Outcome) -> str:
    if outcome.entrance.password_file is None:
        return "as admin, with the password that you have chosen"
    try:
        password = Path(outcome.entrance.password_file).read_text(encoding="ascii")
    except FileNotFoundError:  # the administrator has changed the password at this moment
        return "as admin, with the password that you have chosen"
    return f"as admin, with the password {password}, which must be changed"


def _kubectl(engine: Engine, outcome: Outcome) -> str:
    """A kubectl command that works in any shell, whatever its KUBECONFIG is."""
    program = "kubectl" if shutil.which("kubectl") else str(engine.binary("kubectl"))
    return shlex.join([program, "--kubeconfig", outcome.kubeconfig])


def _curl(outcome: Outcome) -> str:
    """A curl command that passes the token on stdin: other users can see arguments, and histories keep them."""
    entrance = outcome.entrance
    return (
        f'echo "Authorization: Bearer $(cat {shlex.quote(entrance.token_file)})" |'
        f" curl --cacert {shlex.quote(entrance.ca)} -H @- {entrance.server}/apis/kairship.io/v1alpha1/instances"
    )


def _data_dir_flag(home: Home) -> str:
    return "" if home.is_default else f" --data-dir {shlex.quote(str(home.root))}"
