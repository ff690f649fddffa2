"""What the process `kairship apiserver` passes to a worker that it starts."""

from pathlib import Path

import msgspec

from kairship.apiserver.settings import Settings


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    rest_fd: int
    """The inherited file descriptor of the listening socket of REST."""
    grpc_port: int
    ops_socket: Path
    """The unix socket on which the worker serves its health and metrics."""

    def to_argument(self) -> str:
        return msgspec.json.encode(self, enc_hook=str).decode()

    @classmethod
    def from_argument(cls, text: str) -> "WorkerSpec":
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))
