"""Where a test run keeps its files: in memory where there is enough of it.

A run has dozens of etcds and databases, and each of them waits for the disk at every write. On a machine whose disk is
busy with something else these waits become seconds, leases run out, and tests tell about the disk instead of the code.
"""

import os
import shutil
import tempfile
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
NEEDED = 12 << 30
"""A whole run uses less than half of it."""


def prefer_memory() -> None:
    """In the process that starts the run, before anything asks for a temporary folder. Workers inherit it."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    free = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC or free < NEEDED:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
