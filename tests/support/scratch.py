"""The temporary folder of a test run: in memory if there is enough of it.

A run has dozens of etcds and databases, and each of them waits for the disk at every write. On a machine with a busy
disk these waits become seconds, leases run out, and tests fail because of the disk instead of the code.
"""

import os
import shutil
import tempfile
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
NEEDED = 12 << 30
"""Bytes. A run uses less than half of them."""


def prefer_memory() -> None:
    """Sets TMPDIR. The process that starts the run calls this before it uses a temporary folder; workers inherit it."""
    if "TMPDIR" in os.environ or not MEMORY.is_dir():
        return
    free = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC or free < NEEDED:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
