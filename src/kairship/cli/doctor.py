"""`kairship doctor`: what users trip over, found before they do."""

import asyncio

import typer

from kairship.cli.failure import ExitCode
from kairship.cli.output import DataDir, Format, Output, console, print_json
from kairship.embedded import Home, Verdict, examine

_SIGNS = {Verdict.OK: "[green]✓[/]", Verdict.WARNING: "[yellow]![/]", Verdict.PROBLEM: "[red]✗[/]"}


def doctor(data_dir: DataDir, output: Output = Format.TABLE) -> None:
    """Check this machine and the plane on it, and say what to do. Exit code 1 when something is wrong."""
    findings = asyncio.run(examine(Home(data_dir)))
    if output is Format.JSON:
        print_json(findings)
    else:
        for finding in findings:
            console.print(f"{_SIGNS[finding.verdict]} [bold]{finding.subject:<12}[/] {finding.detail}", soft_wrap=True)
            if finding.advice:
                console.print(f"  {'':<12} → {finding.advice}", soft_wrap=True)
    if any(finding.verdict is Verdict.PROBLEM for finding in findings):
        raise typer.Exit(ExitCode.FAILED)
