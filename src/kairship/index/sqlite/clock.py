"""The clock that all processes of a machine share: it never goes back, and goes on while the machine sleeps."""

import time

# Linux stops CLOCK_MONOTONIC while suspended; other systems keep it going and have no other name for it.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    return time.clock_gettime(_SINCE_BOOT)
