"""The instance lifecycle controller: creates, adopts, configures, upgrades, backs up, restores and deletes instances.

`reconciler` decides what is to be done, and is where to begin reading. Each operation is a module (`provisioning`,
`version_upgrade`, `backups`, `restoring`, `deleting`) of functions on an `InstanceOperation` (`operation`).
`instance_status` is the controller's memory in the status of the instance, `desired` translates a spec into the
settings of a driver, `backup_store` is the directory of backups, `credentials` the Secret with the kubeconfig of the
instance, and `credential_expiry` renews what is in it in time.
"""

from kairship.controllers.lifecycle.reconciler import FINALIZER, Estimators, Settings, lifecycle_controller

__all__ = ["FINALIZER", "Estimators", "Settings", "lifecycle_controller"]
