"""`kairship version`: shows the versions of Kairship and of the engine's binaries."""

import platform

import kairship
from kairship.cli.output import Format, Output, print_json, print_table, say
from kairship.engine import Group
from kairship.engine.pins import Catalogue


def version(output: Output = Format.TABLE) -> None:
    """Show the versions of Kairship and of the binaries that it runs."""
    pinned = [(binary.name, binary.version) for binary in Catalogue.load().binaries if binary.group is Group.PLANE]
    if output is Format.JSON:
        components = [{"name": name, "version": number} for name, number in pinned]
        print_json({"kairship": kairship.__version__, "python": platform.python_version(), "engine": components})
        return
    say(f"kairship {kairship.__version__} (Python {platform.python_version()})\n")
    print_table(("ENGINE", "VERSION"), pinned)
