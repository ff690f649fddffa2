"""`kairship version`: of Kairship, and of everything it runs."""

import platform

import kairship
from kairship.cli.output import Format, Output, console, print_json, print_table
from kairship.engine.pins import Catalogue


def version(output: Output = Format.TABLE) -> None:
    """Show the version of Kairship and of the engine that it pins."""
    pinned = {(binary.name, binary.version) for binary in Catalogue.load().binaries}
    if output is Format.JSON:
        components = [{"name": name, "version": number} for name, number in sorted(pinned)]
        print_json({"kairship": kairship.__version__, "python": platform.python_version(), "engine": components})
        return
    console.print(f"kairship {kairship.__version__} (Python {platform.python_version()})\n")
    print_table(("ENGINE", "VERSION"), sorted(pinned))
