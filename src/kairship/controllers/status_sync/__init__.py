"""The status sync controller: observes every instance and writes its conditions and its state.

`probe` observes an instance, `findings` translates that into conditions (pure functions), `damping` keeps conditions
from flapping, and `reconciler` combines them.
"""

from kairship.controllers.status_sync.reconciler import Settings, status_sync_controller

__all__ = ["Settings", "status_sync_controller"]
