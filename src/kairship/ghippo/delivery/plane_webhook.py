"""Sets up the webhook of the plane itself, by which the entrance gets its bindings, without an operator's help.

Its secret is in a Secret of the global cluster, with which the entrance verifies deliveries; after a change there
deliveries are signed with the new one within a minute. It is one task of the leading replica.
"""

import msgspec
import structlog

from kairship.ghippo.database import Database
from kairship.ghippo.delivery import webhooks
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.sealing import Sealer
from kairship.kube import Client, KubeError, kinds
from kairship.reconcile import Clock, SystemClock, jittered
from kairship.resources import NAMESPACE
from kairship.resources.binding_webhook import CURRENT, SECRET

REFRESH_EVERY = 60.0
RETRY_DELAY = 1.0
_TIMEOUT = 5.0

log = structlog.get_logger(__name__)


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return "_Secret(…)"


class PlaneWebhook:
    def __init__(
        self, client: Client, database: Database, sealer: Sealer, *, url: str, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._database = database
        self._sealer = sealer
        self._url = url
        self._clock = clock or SystemClock()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                secret = await self._secret()
                await self._database.write(
                    lambda connection, secret=secret: webhooks.ensure_plane(  # type: ignore[misc]
                        connection, self._sealer, url=self._url, secret=secret
                    )
                )
            except (KubeError, GhippoError, msgspec.ValidationError, KeyError) as error:
                log.warning("the webhook of the plane cannot be set up and will be retried", error=type(error).__name__)
                await self._clock.sleep(RETRY_DELAY)
            else:
                await self._clock.sleep(jittered(REFRESH_EVERY))

    async def _secret(self) -> str:
        found = await self._client.typed(_Secret).get(kinds.SECRETS, SECRET, namespace=NAMESPACE, timeout=_TIMEOUT)
        return found.data[CURRENT].decode()
