"""Settings of malloc for a process whose replies have megabytes.

By default the C library returns freed memory to the system, and every large reply then has to fault its pages in again:
that is a third of the cost of a list. These settings keep some freed memory in the process.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them
_KEPT = 32 << 20


def keep_freed_memory() -> None:
    """Keep up to `_KEPT` bytes of freed memory. A C library without `mallopt` keeps its default."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _KEPT)
