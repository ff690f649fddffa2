"""`kairship doctor`: what users trip over, found before they do."""

import asyncio

import typer
from rich.text import Text

from kairship.cli.failure import ExitCode
from kairship.cli.output import DataDir, Format, Output, bold, print_json, say
from kairship.embedded import Home, Verdict, examine

_SIGNS = {
    Verdict.OK: Text("✓", style="green"),
    Verdict.WARNING: Text("!", style="yellow"),
    Verdict.PROBLEM: Text("✗", style="red"),
}


def doctor(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Check this machine and the plane on it, and say what to do. Exit code 1 when something is wrong."""
    findings = asyncio.run(examine(Home(data_dir)))
    if output is Format.JSON:
        print_json(findings)
    else:
        for finding in findings:
            say(_SIGNS[finding.verdict], " ", bold(f"{finding.subject:<12}"), " ", finding.detail)
            if finding.advice:
                say(f"  {'':<12} → {finding.advice}")
    if any(finding.verdict is Verdict.PROBLEM for finding in findings):
        raise typer.Exit(ExitCode.FAILED)
