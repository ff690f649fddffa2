"""The paths of the supervisor's files in the data directory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    data_dir: Path

    @classmethod
    def of(cls, data_dir: Path | str) -> "Layout":
        return cls(Path(data_dir).resolve())

    @property
    def home(self) -> Path:
        return self.data_dir / "supervisor"

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def processes(self) -> Path:
        return self.home / "processes"

    @property
    def running(self) -> Path:
        return self.home / "running.json"

    @property
    def ports(self) -> Path:
        return self.home / "ports.json"

    @property
    def terms(self) -> Path:
        return self.home / "terms.json"

    @property
    def logs(self) -> Path:
        return self.data_dir / "logs"

    @property
    def own_log(self) -> Path:
        return self.logs / "supervisor.log"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @contextmanager
    def socket_address(self) -> Iterator[str]:
        """The control socket's address, valid inside the `with`.

        The address of a unix socket has at most 107 bytes, and the path of a data directory can be longer. Naming the
        socket through a descriptor of its directory makes the length of the path irrelevant.
        """
        directory = os.open(self.home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{directory}/control.sock"
        finally:
            os.close(directory)

    def create(self) -> None:
        """Create the directories, which only their owner can read."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for directory in (self.home, self.processes, self.logs):
            directory.mkdir(mode=0o700, exist_ok=True)
            directory.chmod(0o700)
