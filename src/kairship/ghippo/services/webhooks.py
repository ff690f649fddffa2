"""The service Webhooks: the receivers of bindings and their progress."""

from typing import Any

import sqlalchemy as sa
from protobuf.wkt import Empty

from kairship.gen.kairship.ghippo.v1alpha1.webhook_pb import (
    CreateWebhookRequest,
    CreateWebhookResponse,
    DeleteWebhookRequest,
    GetWebhookRequest,
    ListWebhooksRequest,
    ListWebhooksResponse,
    UpdateWebhookRequest,
    Webhook,
)
from kairship.ghippo.database import Database
from kairship.ghippo.delivery import webhooks
from kairship.ghippo.sealing import Sealer
from kairship.rpc.calls import Call


def _message(row: sa.Row[Any]) -> Webhook:
    return Webhook(
        name=row.name,
        url=row.url,
        disabled=row.disabled,
        pending=row.pending,
        delivered_sequence=row.delivered_sequence,
        problem=row.problem,
        refused=row.refused,
        owner=row.owner,
    )


class Webhooks:
    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer

    async def list_webhooks(self, request: ListWebhooksRequest, call: Call) -> ListWebhooksResponse:
        return ListWebhooksResponse(items=[_message(row) for row in await self._database.read(webhooks.find)])

    async def create_webhook(self, request: CreateWebhookRequest, call: Call) -> CreateWebhookResponse:
        def work(connection: sa.Connection) -> CreateWebhookResponse:
            secret = webhooks.create(connection, self._sealer, name=request.name, url=request.url, owner=call.caller)
            return CreateWebhookResponse(webhook=_message(webhooks.get(connection, request.name)), secret=secret)

        return await self._database.write(work)

    async def get_webhook(self, request: GetWebhookRequest, call: Call) -> Webhook:
        return _message(await self._database.read(lambda connection: webhooks.get(connection, request.name)))

    async def update_webhook(self, request: UpdateWebhookRequest, call: Call) -> Webhook:
        def work(connection: sa.Connection) -> Webhook:
            webhooks.update(connection, request.name, url=request.url, disabled=request.disabled, owner=call.caller)
            return _message(webhooks.get(connection, request.name))

        return await self._database.write(work)

    async def delete_webhook(self, request: DeleteWebhookRequest, call: Call) -> Empty:
        await self._database.write(lambda connection: webhooks.delete(connection, request.name))
        return Empty()
