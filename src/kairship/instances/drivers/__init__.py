"""Drivers: the ways in which an instance can exist.

``driver`` is the protocol that they share, ``steps`` the form of all their work, and ``polling`` waits for a condition.
``local`` runs a Karmada as supervised processes on this machine; ``external`` adopts a Karmada that its owner runs
elsewhere. A driver states its capabilities; its users never ask which driver it is.
"""

from kairship.instances.drivers.driver import (
    AdoptRefused,
    Backup,
    Capabilities,
    ComponentHealth,
    DesiredInstance,
    Driver,
    DriverError,
)
from kairship.instances.drivers.external.driver import ExternalDriver
from kairship.instances.drivers.local.driver import LocalDriver
from kairship.instances.drivers.steps import Progress, Step, StepFailed, run_steps

__all__ = [
    "AdoptRefused",
    "Backup",
    "Capabilities",
    "ComponentHealth",
    "DesiredInstance",
    "Driver",
    "DriverError",
    "ExternalDriver",
    "LocalDriver",
    "Progress",
    "Step",
    "StepFailed",
    "run_steps",
]
