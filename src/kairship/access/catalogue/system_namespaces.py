"""The namespaces in which Karmada keeps its own objects.

Rights on an instance do not cover them, except those of an Instance Admin.
"""

from kairship.resources import is_reserved

__all__ = ["SYSTEM_NAMESPACES_PERMISSION", "is_reserved"]

SYSTEM_NAMESPACES_PERMISSION = "kairship.systemnamespaces.use"
"""Needed on an instance for its system namespaces; lists leave them out for callers without it."""
