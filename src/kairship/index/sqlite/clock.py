"""The clock that all processes of a machine share. It never goes back, and it goes on while the machine sleeps."""

import time

# Linux stops CLOCK_MONOTONIC while it is suspended. Other systems keep it going and have no CLOCK_BOOTTIME.
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    return time.clock_gettime(_SINCE_BOOT)
