"""The errors of the engine. Each message says what to do.

EngineError
├── GoUnavailableError      no usable Go, and none could be installed
├── DownloadError           sources could not be fetched
│   └── NetworkError        … because the network did not answer
├── CompileError            the compiler or the linker failed
├── DiskFullError           there is not enough disk space, before a build or during it
├── StepTimeoutError        a command ran too long
├── EngineBusyError         another process is changing the cache
├── UnknownBinaryError      the catalogue does not have this name or version
├── NotBuiltError           a binary or its manifests have not been built yet
├── WrongVersionError       a binary in KAIRSHIP_ENGINE_DIR does not have the pinned version
└── ArchiveError            an archive is damaged, made for another platform or version, or unsafe
"""

from pathlib import Path


class EngineError(Exception):
    """The base class of this package's errors."""


class GoUnavailableError(EngineError):
    def __init__(self, *, minimum: str, found: str | None, reason: str) -> None:
        have = f"the Go found is {found}" if found else "no Go was found"
        super().__init__(
            f"building the engine needs Go {minimum} or newer; {have}, and installing one failed:\n{reason}\n"
            "Install Go from https://go.dev/dl, or supply built binaries with `kairship engine unpack` or "
            "KAIRSHIP_ENGINE_DIR."
        )


class DownloadError(EngineError):
    def __init__(self, *, module: str, tail: str, advice: str = "") -> None:
        self.module = module
        super().__init__(f"could not download the sources of {module}:\n{tail}{advice}")


class NetworkError(DownloadError):
    def __init__(self, *, module: str, tail: str) -> None:
        advice = (
            "\nCheck the network (GOPROXY is respected), or supply built binaries with "
            "`kairship engine unpack` or KAIRSHIP_ENGINE_DIR."
        )
        super().__init__(module=module, tail=tail, advice=advice)


class CompileError(EngineError):
    def __init__(self, *, binary: str, tail: str) -> None:
        self.binary = binary
        super().__init__(f"{binary} did not compile:\n{tail}")


class DiskFullError(EngineError):
    def __init__(self, *, path: Path, needed: int | None = None, free: int | None = None) -> None:
        self.path = path
        if needed is None or free is None:
            room = "the disk ran full"
        else:
            room = f"about {needed / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free"
        super().__init__(
            f"not enough disk space at {path}: {room}. Free some disk space and run the command again; binaries that "
            "have been built are kept."
        )


class StepTimeoutError(EngineError):
    def __init__(self, *, command: str, seconds: float) -> None:
        super().__init__(f"`{command}` did not finish within {seconds:.0f} s and was killed: run the command again")


class EngineBusyError(EngineError):
    def __init__(self, *, pid: int | None) -> None:
        self.pid = pid
        super().__init__(
            f"another process (pid {pid or 'unknown'}) is changing the engine's cache; try again when it has finished"
        )


class UnknownBinaryError(EngineError):
    def __init__(self, *, name: str, version: str | None) -> None:
        super().__init__(f"the engine has no {name}{f' {version}' if version else ''}")


class NotBuiltError(EngineError):
    def __init__(self, *, what: str, group: str, path: Path) -> None:
        self.what = what
        self.path = path
        super().__init__(f"{what} is not there ({path}): run `kairship engine build --group {group}`")


class WrongVersionError(EngineError):
    def __init__(self, *, binary: str, path: Path, found: str, wanted: str) -> None:
        self.binary, self.found, self.wanted = binary, found, wanted
        super().__init__(f"{binary} at {path} is {found}, but {wanted} is needed")


class ArchiveError(EngineError):
    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{path} was refused: {reason}")
