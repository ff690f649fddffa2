"""The instance registry controller: what roles can be bound to, as global management learns it.

`wanted` says which registrations there should be (pure functions), `reconciler` makes, renews and removes them, and
keeps the catalogue of resource types and actions beside them.
"""

from kairship.controllers.registry.reconciler import NAME, registry_controller

__all__ = ["NAME", "registry_controller"]
