"""The limit of open files and connections of a process."""

import resource


def raise_descriptor_limit() -> None:
    """Raise the soft limit to the hard limit. The usual soft limit is 1024, which is lower than our own bounds."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
