"""`kairship down`: stops the plane, and on request deletes its data."""

import asyncio
from typing import Annotated

import typer

from kairship.cli.output import DataDir, Format, Output, print_json, say
from kairship.embedded import Home, stop_plane


def down(
    data_dir: DataDir,
    purge: Annotated[bool, typer.Option("--purge", help="Delete all data of the plane as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Stop the plane. Its data is kept for the next `kairship up`, unless you give --purge."""
    home = Home(data_dir)
    stopped = purged = False
    if home.is_used:
        if purge and not yes:
            typer.confirm(f"Delete the plane in {home.root} with everything in it?", abort=True, err=True)
        with home.exclusive():
            stopped = asyncio.run(stop_plane(home))
            if purge:
                home.purge()
                purged = True
    if output is Format.JSON:
        print_json({"stopped": stopped, "purged": purged})
        return
    say("The plane is stopped." if stopped else f"No plane was running in {home.root}.")
    if purged:
        say("Its data has been deleted.")
