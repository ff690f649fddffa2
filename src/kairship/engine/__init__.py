"""The engine: the upstream binaries that Kairship runs, pinned by Go modules, built here and found again.

`catalogue` says which, `pins` at which version, `builder` makes them, `archive` carries them to another machine, and
`Engine` tells where they are. Nothing here knows how they are run.
"""

from kairship.engine.archive import pack, unpack
from kairship.engine.builder import build
from kairship.engine.catalogue import Group
from kairship.engine.engine import Engine, Status
from kairship.engine.errors import EngineError
from kairship.engine.progress import Event, Progress

__all__ = ["Engine", "EngineError", "Event", "Group", "Progress", "Status", "build", "pack", "unpack"]
