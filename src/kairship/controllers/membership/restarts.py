"""Restarts of Karmada's controllers, which keep in memory how they reach members.

One restart serves all memberships of the instance that need it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from kairship.controlplane import karmada
from kairship.instances.drivers import DriverError
from kairship.reconcile import Clock, RetryableError

RESTARTED = (karmada.CONTROLLER_MANAGER, karmada.SEARCH, karmada.METRICS_ADAPTER)

Restart = Callable[[str], Awaitable[bool]]
"""Restarts the controllers of the instance of that name and waits until the old processes are gone. Returns False if
the driver cannot do that."""


class KarmadaRestarts:
    """Remembers when the controllers of each instance were restarted."""

    def __init__(self, restart: Restart, clock: Clock) -> None:
        self._restart = restart
        self._clock = clock
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._restarted: dict[str, float] = {}

    async def ensure_since(self, moment: float, instance: str) -> bool:
        """Restarts the controllers unless that has happened after `moment`. Returns False if the driver cannot do
        that."""
        async with self._locks[instance]:
            if self._restarted.get(instance, float("-inf")) > moment:
                return True
            begun = self._clock.now()
            if not await self._restart(instance):
                return False
            self._restarted[instance] = begun
            return True

    async def restart_after_waiting(self, waited: float, instance: str) -> bool:
        """Restarts the controllers unless that has happened within the last `waited` seconds. Raises
        `RetryableError`."""
        try:
            return await self.ensure_since(self._clock.now() - waited, instance)
        except DriverError as error:
            raise RetryableError(str(error)) from error


def restart_request(instance: str) -> str:
    """What the operator of an adopted Karmada has to do."""
    return f"restart {' and '.join(RESTARTED[:2])} of the Karmada of {instance}"
