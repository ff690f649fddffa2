"""The assembled command, and the one place where an exception becomes an exit code.

A user's mistake and a failing machine end in a message that says what to do, never in a traceback: those are for
defects, and only what nobody foresaw gets one.

Of all commands only the one that is asked for is imported: kubectl runs `kairship token` before each of its own
commands, and must not wait for what servers and the embedded plane need.
"""

import importlib
import io
import sys

import typer

# In the order of the help: where a command is, and what is called there.
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


def assembled(asked: str = "") -> typer.Typer:
    """With the command that is asked for, or with all if there is none of that name."""
    app = typer.Typer(
        name="kairship",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_kairship)
    for name in [asked] if asked in _COMMANDS else _COMMANDS:
        module, attribute = _COMMANDS[name]
        found = getattr(importlib.import_module(f"kairship.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _kairship() -> None:
    """One place to run many Karmada control planes."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old terminal shows '?' for '✓' rather than nothing at all
    app = assembled(*sys.argv[1:2])
    try:
        app(prog_name="kairship")  # also as `python -m kairship`
    except SystemExit:
        raise  # the usual end, which nobody has to explain
    except BaseException as error:
        from kairship.cli.failure import explain

        failure = explain(error)
        if failure is None:
            raise
        typer.secho(f"error: {failure.message}", fg=typer.colors.RED, err=True)
        sys.exit(failure.code)
