"""Why something took long: because it waited, for a disk as a rule, or because the processor was busy with others."""

import resource

_THIS_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def waits() -> int:
    """How often this thread has waited so far: for this thread where the system tells, otherwise for the process.

    What writes into the memory of the system does not wait, unless more is there than the disk takes.
    """
    return resource.getrusage(_THIS_THREAD).ru_nvcsw


def disk_reads() -> int:
    """How often it has asked the disk so far."""
    used = resource.getrusage(_THIS_THREAD)
    return used.ru_inblock + used.ru_majflt
