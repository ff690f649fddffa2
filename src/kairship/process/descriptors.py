"""Open files and connections, of which our processes have many."""

import resource


def take_all_descriptors() -> None:
    """Many systems begin with 1024, which is less than the connections that we bound by ourselves."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
