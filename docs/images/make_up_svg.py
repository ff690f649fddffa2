"""Draws `up.svg` from what `kairship up` has printed: `kairship up 2>&1 | python docs/images/make_up_svg.py`."""

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 132
_DONE = re.compile(r"^ *[\d.]+ s  (?P<subject>[^:]+): (?P<outcome>.*) \[[\d.]+ s\]$")
_FACT = re.compile(r"^  (?P<name>\w[\w ]{1,14}?) {2,}(?P<value>.*)$")


def drawn(line: str) -> Text | None:
    """A line of the picture: what is done, and the summary. What was being done on the way is left out."""
    if match := _DONE.match(line):
        return Text.assemble(("✓ ", "green"), (f"{match['subject']:<18}", "bold"), match["outcome"])
    if re.match(r"^ *[\d.]+ s  ", line):
        return None
    if line.startswith("The plane is"):
        return Text(line, style="bold green")
    if match := _FACT.match(line):
        return Text.assemble((f"  {match['name']:<16}", "bold"), (match["value"], "cyan"))
    return Text(line)


if __name__ == "__main__":
    console = Console(record=True, width=WIDTH, file=Path("/dev/null").open("w"), force_terminal=True)  # noqa: SIM115
    console.print(Text("$ make up", style="bold"))
    for text in filter(None, map(drawn, sys.stdin.read().splitlines())):
        text.truncate(WIDTH, overflow="ellipsis")
        console.print(text)
    # Without the web fonts that rich refers to: a picture loads nothing from elsewhere.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title="kairship"), flags=re.DOTALL)
    Path(__file__).with_name("up.svg").write_text(picture)
