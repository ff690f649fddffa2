"""`kairship doctor`: checks the machine and the plane for the usual problems."""

import asyncio

import typer
from rich.text import Text

from kairship.cli.failure import ExitCode
from kairship.cli.output import DataDir, Format, Output, bold, print_json, say
from kairship.embedded import Home, Verdict, run_checks

_SIGNS = {
    Verdict.OK: Text("✓", style="green"),
    Verdict.WARNING: Text("!", style="yellow"),
    Verdict.PROBLEM: Text("✗", style="red"),
}


def doctor(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Check this machine and the plane on it, and advise what to do. The exit code is 1 if there is a problem."""
    results = asyncio.run(run_checks(Home(data_dir)))
    if output is Format.JSON:
        print_json(results)
    else:
        for result in results:
            say(_SIGNS[result.verdict], " ", bold(f"{result.subject:<12}"), " ", result.detail)
            if result.advice:
                say(f"  {'':<12} → {result.advice}")
    if any(result.verdict is Verdict.PROBLEM for result in results):
        raise typer.Exit(ExitCode.FAILED)
