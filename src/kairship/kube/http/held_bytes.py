"""Bounds the memory in which one client keeps unfinished replies: each by itself, and all of them together.

A server that never ends its replies, or the lines of its watches, would fill the memory of the process otherwise. If
all unfinished replies together are too large, the large ones fail. Those of ordinary size go on, so that a hostile
member does not fail the calls to other members that share the client of an instance.
"""

from kairship.kube.errors import ReplyTooLarge

_ORDINARY = 256 << 10


class HeldBytes:
    def __init__(self, server: str, *, most: int) -> None:
        self._server = server
        self._most = most
        self.total = 0

    def reply(self, largest: int) -> "HeldReply":
        return HeldReply(self, largest)

    def check(self, size: int, largest: int) -> None:
        """`size` is that of one reply so far, and `largest` its bound. Raises `ReplyTooLarge`."""
        if size > largest:
            raise ReplyTooLarge(
                f"{self._server} answers with more than {largest >> 10} KiB, which are not read; ask for less, or "
                "check what answers there"
            )
        if self.total > self._most and size > _ORDINARY:
            raise ReplyTooLarge(
                f"{self._server} answers several requests at once with more than {self._most >> 20} MiB; send fewer at "
                "the same time, or check what answers there"
            )


class HeldReply:
    """One reply while it is being read. Use it as a context: leaving it gives its bytes back."""

    def __init__(self, held: HeldBytes, largest: int) -> None:
        self._held = held
        self._largest = largest
        self._size = 0

    def __enter__(self) -> "HeldReply":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def add(self, size: int) -> None:
        """Raises `ReplyTooLarge` if the reply, or all of them together, have become too large."""
        self._size += size
        self._held.total += size
        self._held.check(self._size, self._largest)

    def release(self) -> None:
        self._held.total -= self._size
        self._size = 0
