"""What every benchmark shares: the file of its results, and a description of the machine."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

import kairship

RESULTS = Path(__file__).parent / "results"


def write(name: str, *, figures: dict[str, Any], ratios: dict[str, float] | None = None) -> None:
    """Write `results/<name>.json` with figures, ratios, machine and versions."""
    RESULTS.mkdir(exist_ok=True)
    document = {
        "benchmark": name,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 1024**3, 1),
            "load_before": round(psutil.getloadavg()[0], 2),
            "kernel": platform.release(),
            "python": platform.python_version(),
        },
        "kairship": kairship.__version__,
        "figures": figures,
        "ratios": ratios or {},
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        shown.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    Console().print(shown, "")
