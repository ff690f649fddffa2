"""The native proxy of an entrance in the process of the test, in front of instances of the test, without an index."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from kairship.apiserver.audit import Spool
from kairship.apiserver.proxy.handler import ProxyDependencies
from kairship.apiserver.proxy.index.own_writes import OwnWrites
from kairship.apiserver.proxy.index.reads import IndexedReads
from kairship.apiserver.proxy.request.audit import ProxyAudit
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.services.instance_clients import InstanceClients, Pool
from kairship.index.index_access import IndexAccess, IndexLocation
from kairship.kube import Client, Connection
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError
from support.bindings import World
from support.certificates import Authority
from support.entrance import Client as EntranceClient
from support.entrance import running
from support.scripted_server import Reply, ScriptedServer, scripted_server

INSTANCE_TOKEN = "the-token-of-the-plane"


class EveryCallerIsValid:
    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        return None

    def staleness(self, *, delicate: bool) -> ApiError | None:
        return None


class NothingCollected:
    def instance(self, name: str) -> str | None:
        return None

    def member(self, instance: str, cluster: str) -> str | None:
        return None


class TwoMembers:
    """Every instance has the same two members."""

    def of(self, instance: str) -> tuple[str, ...]:
        return ("karmada-es-frankfurt", "karmada-es-oregon")


class OneInstance:
    """A pool in which every name leads to the same instance."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def instance(self, name: str) -> Client:
        return self._client


def proxy_dependencies(instances: Pool, world: World, spool: Spool) -> ProxyDependencies:
    index, collected = IndexAccess(IndexLocation()), NothingCollected()
    return ProxyDependencies(
        instances=InstanceClients(instances),
        authoriser=ProxyAuthoriser(world.authoriser),
        revocation=EveryCallerIsValid(),
        audit=ProxyAudit(spool),
        reads=IndexedReads(index, collected),
        own_writes=OwnWrites(index, collected),
        execution_namespaces=TwoMembers(),
    )


@asynccontextmanager
async def scripted_instance(
    folder: Path, world: World, *script: Reply
) -> AsyncIterator[tuple[EntranceClient, ScriptedServer]]:
    """Runs an entrance and one scripted server behind its proxy. Every name of an instance leads to that server."""
    authority = Authority()
    async with (
        scripted_server(*script, tls=authority.issue().server_context()) as server,
        Client(Connection(server.url, ca=authority.certificate, token=INSTANCE_TOKEN)) as instance,
    ):
        with closing(Spool(folder / "audit")) as spool:
            dependencies = proxy_dependencies(OneInstance(instance), world, spool)
            writing = asyncio.create_task(spool.run())
            async with running(world=world, proxied=dependencies) as entrance:
                yield entrance.client, server
            writing.cancel()
