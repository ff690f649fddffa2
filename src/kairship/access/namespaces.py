"""Rights on an instance do not reach the namespaces in which Karmada keeps its own things; an Instance Admin's do."""

from kairship.resources import is_reserved

__all__ = ["NEEDED", "is_reserved"]

NEEDED = "kairship.systemnamespaces.use"
"""Lists show these namespaces of an instance to those only who hold this there: `reach` says where."""
