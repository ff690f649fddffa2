"""Drivers: the ways in which an instance can exist.

``driver`` is the protocol that they share, ``steps`` the shape of all their work. ``local`` runs a Karmada as
supervised processes on this machine, ``external`` adopts one that somebody else runs. A driver states what it can;
nobody asks which one it is.
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
from kairship.instances.drivers.external import ExternalDriver
from kairship.instances.drivers.local import LocalDriver
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
