"""The instance lifecycle controller: create, configure, upgrade, back up, restore, adopt, let go and destroy.

`reconciler` decides what is to be done, and is where to begin reading. Each thing that can be done is a module
(`settling`, `upgrading`, `backing_up`, `restoring`, `deleting`) of functions on a `Work`. `journal` is the controller's
memory in the status of the instance, `backup_store` the directory of backups, `credentials` the Secret that leads to
the instance, `lasting` when what is in it ends.
"""

from kairship.controllers.lifecycle.reconciler import (
    FINALIZER,
    NAME,
    Estimators,
    Settings,
    lifecycle_controller,
    no_estimators,
)

__all__ = ["FINALIZER", "NAME", "Estimators", "Settings", "lifecycle_controller", "no_estimators"]
