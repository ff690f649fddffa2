"""Assembles the command. This is the only place where an exception becomes an exit code.

A mistake of the user or a failure of the machine ends in a message that says what to do. Only an unexpected exception,
which is a defect, ends in a traceback.

Only the module of the requested command is imported: kubectl runs `kairship token` before each of its own commands, and
must not wait for the imports of the servers and of the embedded plane.
"""

import importlib
import io
import sys

import typer

# Each command, in the order of the help, with its module and the function or Typer app in it.
_COMMANDS = {
    "up": ("up", "up"),
    "down": ("down", "down"),
    "status": ("status", "status"),
    "logs": ("logs", "logs"),
    "doctor": ("doctor", "doctor"),
    "login": ("account.commands", "login"),
    "approve": ("account.commands", "approve"),
    "logout": ("account.commands", "logout"),
    "whoami": ("account.commands", "whoami"),
    "token": ("account.token", "token"),
    "kubeconfig": ("account.kubeconfig", "kubeconfig"),
    "version": ("version", "version"),
    "apiserver": ("apiserver", "apiserver"),
    "controller-manager": ("controller_manager", "controller_manager"),
    "kpanda": ("kpanda", "kpanda"),
    "ghippo": ("ghippo", "ghippo"),
    "engine": ("engine", "app"),
    "member": ("member", "app"),
}


def assembled(requested: str = "") -> typer.Typer:
    """The app with the requested command, or with all commands if there is none of that name."""
    app = typer.Typer(
        name="kairship",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_kairship)
    for name in [requested] if requested in _COMMANDS else _COMMANDS:
        module, attribute = _COMMANDS[name]
        found = getattr(importlib.import_module(f"kairship.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _kairship() -> None:
    """Manage many Karmada control planes in one place."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show '✓' shows '?' instead of failing
    app = assembled(*sys.argv[1:2])
    try:
        app(prog_name="kairship")  # also as `python -m kairship`
    except SystemExit:
        raise  # the usual end of a command
    except BaseException as error:
        from kairship.cli.failure import explain

        failure = explain(error)
        if failure is None:
            raise
        typer.secho(f"error: {failure.message}", fg=typer.colors.RED, err=True)
        sys.exit(failure.code)
