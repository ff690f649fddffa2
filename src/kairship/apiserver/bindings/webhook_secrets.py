"""The secrets that deliveries of bindings are signed with: a Secret of the global cluster, followed as it changes."""

import msgspec

from kairship.access.delivery.protocol import Receiver
from kairship.kube import Client, kinds
from kairship.reconcile import Change, Clock, Metadata, Metrics, Reflector, Selection
from kairship.resources import NAMESPACE
from kairship.resources.binding_webhook import CURRENT, PREVIOUS, SECRET

_SHORTEST = 16
"""Characters of a secret; a shorter one could be guessed."""


class _Secret(msgspec.Struct, frozen=True):
    metadata: Metadata
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"_Secret({self.metadata.name!r})"


class WebhookSecrets:
    """Must be run. Until the Secret exists, no delivery is accepted."""

    def __init__(self, client: Client, *, clock: Clock, metrics: Metrics) -> None:
        self._receiver = Receiver()
        selection = Selection(kinds.SECRETS, _Secret, namespace=NAMESPACE, field_selector=f"metadata.name={SECRET}")
        self._reflector = Reflector(client, selection, clock=clock, metrics=metrics)
        self._reflector.subscribe(self._changed)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        await self._reflector.run()

    def receiver(self) -> Receiver:
        return self._receiver

    def _changed(self, change: Change[_Secret]) -> None:
        data = change.new.data if change.new is not None else {}
        found = (data.get(key, b"").decode(errors="replace") for key in (CURRENT, PREVIOUS))
        self._receiver = Receiver(*(secret for secret in found if len(secret) >= _SHORTEST))
