"""The instance registry controller: registers with global management what roles can be bound to.

`desired` says which Registrations there should be (pure functions). `reconciler` creates, updates and removes them, and
keeps the catalogue of resource types and actions (Products) next to them.
"""

from kairship.controllers.registry.reconciler import registry_controller

__all__ = ["registry_controller"]
