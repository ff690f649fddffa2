"""Freed memory serves the next reply without another request to the system."""

import subprocess
import sys

_FAULTS = """
import resource, sys
from kairship.process.allocation import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(8 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_freed_memory()
    faults()
print(faults())
"""


def test_large_pieces_are_used_again() -> None:
    given_back, kept = (
        int(subprocess.run([sys.executable, "-c", _FAULTS, how], check=True, capture_output=True).stdout)
        for how in ("given back", "kept")
    )
    assert kept < given_back / 10
