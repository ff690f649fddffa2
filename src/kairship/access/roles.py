"""The roles that exist without anybody making them, each with everything that the one before it has.

What a role allows is decided permission by permission, in the table: each permission names the least role that has it.
"""

import enum


class Role(enum.IntEnum):
    """In rising order. At a workspace, an instance or a namespace the first three can be bound."""

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3
    PLATFORM_ADMIN = 4

    @property
    def id(self) -> str:
        """What bindings call it: platform-admin."""
        return self.name.lower().replace("_", "-")

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()


BY_ID = {role.id: role for role in Role}
