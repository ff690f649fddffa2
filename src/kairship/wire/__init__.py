"""The API as data: its methods, and its messages as JSON.

Everything above uses generated messages (`kairship.gen`), but only this package knows which library is behind them: how
JSON is read and written, how objects of Kubernetes become messages, how descriptors and their options are read. Nothing
here does input or output, and all of it is safe to use from several tasks and threads.
"""

from kairship.wire.catalogue import Download, Method, Route, descriptors, internal_methods, methods
from kairship.wire.mirroring import Mirror
from kairship.wire.parameters import Parameter, find_parameter
from kairship.wire.reading import Reading, UnreadableError, read
from kairship.wire.validation import violations
from kairship.wire.writing import write

__all__ = [
    "Download",
    "Method",
    "Mirror",
    "Parameter",
    "Reading",
    "Route",
    "UnreadableError",
    "descriptors",
    "find_parameter",
    "internal_methods",
    "methods",
    "read",
    "violations",
    "write",
]
