"""The key of a work queue."""

import msgspec


class Key(msgspec.Struct, frozen=True, order=True):
    """The name and namespace of what is to be reconciled.

    The queue serves groups in turn: keys of one group, most often an instance, wait for each other and not for the keys
    of other groups.
    """

    name: str
    namespace: str = ""
    group: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.group, self.namespace, self.name) if part)
