"""Global management and an entrance in front of it, as processes of their own in a global cluster of the test's own.

There are no instances and no controllers. Tests use it for authentication, authorisation and audit, also under kills.
"""

import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kairship.kube import AlreadyExists, Client, Connection, kinds
from kairship.resources import NAMESPACE, binding_webhook
from support.certificates import Authority
from support.entrance import Client as Caller
from support.entrance import Reply
from support.entrance_process import EntranceProcess, entrance_process
from support.ghippo_process import GhippoProcess, ghippo_process
from support.relay import Relay, relay_to
from support.waiting import eventually

BASE = "/apis/ghippo.io/v1alpha1"


@dataclass(frozen=True)
class SmallPlane:
    ghippo: GhippoProcess
    entrance: EntranceProcess
    admin: Caller
    """A client for REST and gRPC with the first access token of the administrator."""
    deliveries: Relay
    """The relay through which global management delivers bindings to the entrance."""

    async def ask(self, verb: str, path: str, body: Any = None, *, token: str | None = None) -> Reply:
        """Sends a request to global management, as the administrator or with another token."""
        client = self.admin if token is None else self.admin.named(token)
        return await client.request(verb, f"{BASE}{path}", body)

    async def get(self, verb: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
        """Returns the content of the reply. The request must succeed."""
        reply = await self.ask(verb, path, body, token=token)
        assert reply.status == 200, reply.body
        return reply.json


@asynccontextmanager
async def small_plane(connection: Connection, folder: Path) -> AsyncIterator[SmallPlane]:
    """Runs both processes. When the block begins they serve, and the administrator has all rights."""
    await _make_webhook_secret(connection)
    port = _free_port()
    authority = Authority()
    (folder / "entrance.crt").write_bytes(authority.certificate)
    async with (
        relay_to("127.0.0.1", port) as deliveries,
        ghippo_process(connection, folder / "ghippo", more=_webhook(deliveries, folder / "entrance.crt")) as ghippo,
        entrance_process(connection, folder, ghippo=ghippo.endpoint, port=port, authority=authority) as running,
        running.client() as client,
    ):
        plane = SmallPlane(ghippo, running, client, deliveries)

        async def is_administrator() -> bool:
            return (await plane.ask("GET", "/users")).status == 200

        await eventually(is_administrator, "the administrator having their rights")
        yield plane


def _webhook(deliveries: Relay, ca: Path) -> tuple[str, ...]:
    return f"--webhook=https://{deliveries.address}{binding_webhook.PATH}", f"--webhook-ca={ca}"


async def _make_webhook_secret(connection: Connection) -> None:
    secret = base64.b64encode(os.urandom(24).hex().encode()).decode()
    manifest = {"metadata": {"name": binding_webhook.SECRET}, "data": {binding_webhook.CURRENT: secret}}
    async with Client(connection) as client:
        with suppress(AlreadyExists):
            await client.create(kinds.SECRETS, manifest, namespace=NAMESPACE)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
