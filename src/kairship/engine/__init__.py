"""The engine: the upstream binaries that Kairship runs. Go modules pin their versions, and they are built from source.

    catalogue    which binaries there are
    pins         their versions, read from go.mod
    builder      builds them, with the Go of `toolchain`, the commands of `command` and the disk checks of `space`
    archive      packs them for another machine, and unpacks them there
    engine       where the binaries are
    cache, lock  where built binaries are stored, and the lock on that folder
    progress     the events that a build reports
    errors       the errors of this package

Nothing in this package knows how the binaries are run.
"""

from kairship.engine.archive import pack, unpack
from kairship.engine.builder import build
from kairship.engine.catalogue import Group
from kairship.engine.engine import ComponentStatus, Engine
from kairship.engine.errors import EngineError
from kairship.engine.progress import Event, Progress

__all__ = ["ComponentStatus", "Engine", "EngineError", "Event", "Group", "Progress", "build", "pack", "unpack"]
