"""Memory between requests, of a process that answers with megabytes at a time.

By itself the C library gives what was freed back to the system, and every large reply pays for its pages anew: a third
of what a list costs. So some of it is kept.
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them
_KEPT = 32 << 20


def keep_freed_memory() -> None:
    """At most `_KEPT` bytes of it. Another C library has no such setting, and goes on as it does."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT)
        mallopt(_MMAP_THRESHOLD, _KEPT)
