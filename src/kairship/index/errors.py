"""The errors that the databases of the index raise."""


class NoSuchClusterError(Exception):
    """The index has nothing of this cluster (yet)."""


class BrokenIndexError(Exception):
    """The stored data cannot be read. Its writer builds it anew; until then reads pass through to the cluster."""


class ReplacedError(BrokenIndexError):
    """Another process writes this cluster now. The writer that gets this error has to stop."""
