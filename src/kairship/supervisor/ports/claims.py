"""Claims on ports among the running planes of one machine.

A port is allocated before a process listens on it, so that another plane would find it free meanwhile. A claim is an
abstract unix socket with the number of the port in its name: binding it is atomic, it is visible to every user of the
machine, it leaves no file behind, and the kernel ends it together with the process that holds it.
"""

import errno
import os
import socket

_NAME = "\0kairship/port/{}"


class PortClaims:
    """The claims of one process. Everything is done at once, without waiting."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}
        """The file descriptor of each claim by its port: a forgotten one is closed with the process."""

    def claim(self, port: int) -> bool:
        """Whether the port is now claimed by this process. It is not if another process has claimed it."""
        if port in self._held:
            return True
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(_NAME.format(port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
                raise
            self._held[port] = claim.detach()
        return True

    def release(self, port: int) -> None:
        if (descriptor := self._held.pop(port, None)) is not None:
            os.close(descriptor)

    def release_all(self) -> None:
        for port in tuple(self._held):
            self.release(port)
