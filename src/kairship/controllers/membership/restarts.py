"""Restarts of Karmada's controllers, which keep in memory how they reach members. One serves all who ask for it."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from kairship.controlplane import karmada
from kairship.instances.drivers import DriverError
from kairship.reconcile import Clock, RetryableError

RESTARTED = (karmada.CONTROLLER_MANAGER, karmada.SEARCH, karmada.METRICS_ADAPTER)

Restart = Callable[[str], Awaitable[bool]]
"""Restarts what holds tokens in the instance of that name, until the old processes are gone; False where we may not."""


class Restarts:
    def __init__(self, restart: Restart, clock: Clock) -> None:
        self._restart = restart
        self._clock = clock
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._restarted: dict[str, float] = {}

    async def since(self, moment: float, instance: str) -> bool:
        """Whether they were restarted after that moment: now, if need be. Never where we may not."""
        async with self._turns[instance]:
            if self._restarted.get(instance, float("-inf")) > moment:
                return True
            begun = self._clock.now()
            if not await self._restart(instance):
                return False
            self._restarted[instance] = begun
            return True

    async def after_waiting(self, waited: float, instance: str) -> bool:
        """The same, once for all who have waited in vain for so many seconds. Raises `RetryableError`."""
        try:
            return await self.since(self._clock.now() - waited, instance)
        except DriverError as error:
            raise RetryableError(str(error)) from error


def request_to_restart(instance: str) -> str:
    """For whoever may, where we may not."""
    return f"restart {' and '.join(RESTARTED[:2])} of the Karmada of {instance}"
