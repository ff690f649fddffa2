"""The built-in roles. Each has all permissions of the one before it.

The table decides what a role allows, permission by permission: each permission names the least role that has it.
"""

import enum


class Role(enum.IntEnum):
    """In rising order. The first three can be bound on a workspace, an instance or a namespace."""

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3
    PLATFORM_ADMIN = 4

    @property
    def id(self) -> str:
        """The identifier in bindings, such as platform-admin."""
        return self.name.lower().replace("_", "-")

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").title()


BY_ID = {role.id: role for role in Role}
