"""The status sync controller: how every instance is doing, as conditions and in one word.

`observation` looks, `findings` says what that means (pure functions), `damping` keeps what is written from flapping,
`reconciler` puts them together.
"""

from kairship.controllers.status_sync.damping import Thresholds
from kairship.controllers.status_sync.observation import Reach
from kairship.controllers.status_sync.reconciler import NAME, Settings, status_sync_controller

__all__ = ["NAME", "Reach", "Settings", "Thresholds", "status_sync_controller"]
