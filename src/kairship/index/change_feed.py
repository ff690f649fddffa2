"""The change feed of a cluster: its latest changes, in their order, for readers that follow many clusters at once.

Each cluster has a feed of bounded length, with deletions among its entries. A reader keeps a position and asks for what
came after it. A reader that falls too far behind, or that meets an index which was built anew, is told that changes
were lost and has to read everything again. An entry names the object; its present state is read from the index. When a
kind was listed for the first time, or is no longer served, the feed says so in one entry and not for each of its
objects. `feed_follower` reads the feeds of many clusters. The databases keep a feed in their table `ring`.
"""

from typing import NamedTuple

import msgspec

MOST_CHANGES = 20_000
"""How many changes of a cluster are kept."""


class FeedPosition(msgspec.Struct, frozen=True):
    """How far a reader has followed a feed."""

    feed: str
    """The identity of the feed: an index file that was built anew has another one."""
    number: int


class FeedChange(NamedTuple):
    kind: str
    key: str
    """Empty if the change is about the whole kind."""
    uid: str
    deleted: bool

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


class FeedPage(msgspec.Struct, frozen=True):
    position: FeedPosition
    changes: list[FeedChange]
    lost: bool = False
    """Whether some changes after the reader's position are no longer known."""
