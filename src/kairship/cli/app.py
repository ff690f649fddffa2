"""The assembled command, and the one place where an exception becomes an exit code.

A user's mistake and a failing machine end in a message that says what to do, never in a traceback: those are for
defects, and only what nobody foresaw gets one.
"""

import io
import sys

import typer

from kairship.cli import (
    apiserver,
    controller_manager,
    doctor,
    down,
    engine,
    ghippo,
    kpanda,
    logs,
    member,
    status,
    up,
    version,
)
from kairship.cli.account import commands as account
from kairship.cli.account.kubeconfig import kubeconfig
from kairship.cli.failure import explain

app = typer.Typer(
    name="kairship",
    help="One place to run many Karmada control planes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(up.up)
app.command()(down.down)
app.command()(status.status)
app.command()(logs.logs)
app.command()(doctor.doctor)
app.command()(account.login)
app.command()(account.approve)
app.command()(account.logout)
app.command()(account.whoami)
app.command()(account.token)
app.command()(kubeconfig)
app.command()(version.version)
app.command()(apiserver.apiserver)
app.command()(controller_manager.controller_manager)
app.command()(kpanda.kpanda)
app.command()(ghippo.ghippo)
app.add_typer(engine.app, name="engine")
app.add_typer(member.app, name="member")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old terminal shows '?' for '✓' rather than nothing at all
    try:
        app(prog_name="kairship")  # also as `python -m kairship`
    except BaseException as error:
        failure = explain(error)
        if failure is None:
            raise
        typer.secho(f"error: {failure.message}", fg=typer.colors.RED, err=True)
        sys.exit(failure.code)
