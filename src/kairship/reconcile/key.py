"""What a controller is asked to look at."""

import msgspec


class Key(msgspec.Struct, frozen=True, order=True):
    """One thing to reconcile: a name, and where it lives.

    `group` is whose turn it takes: keys of one group (most often an instance) wait for each other, not for those of
    other groups.
    """

    name: str
    namespace: str = ""
    group: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.group, self.namespace, self.name) if part)
