"""What the native proxy of an entrance in the process of a test leads to: instances that the test brings, no index."""

from kairship.apiserver.audit import Spool
from kairship.apiserver.proxy.auditing import ProxyAudit
from kairship.apiserver.proxy.indexed import IndexedReads
from kairship.apiserver.proxy.noting import NotedWrites
from kairship.apiserver.proxy.proxy import Behind
from kairship.apiserver.proxy.rights import ProxyRights
from kairship.apiserver.services.reach import Pool, Reach
from kairship.index.opening import IndexAccess, IndexPlace
from kairship.kube import Client
from kairship.rpc.calls import Caller
from kairship.rpc.errors import ApiError
from support.bindings import World


class Everybody:
    """Is who they say they are."""

    def objection_to(self, caller: Caller, *, delicate: bool) -> ApiError | None:
        return None


class NothingCollected:
    def instance(self, name: str) -> str | None:
        return None

    def member(self, instance: str, cluster: str) -> str | None:
        return None


class OneInstance:
    """Whatever it is called."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def instance(self, name: str) -> Client:
        return self._client


def leading_to(instances: Pool, world: World, spool: Spool) -> Behind:
    index, collected = IndexAccess(IndexPlace()), NothingCollected()
    return Behind(
        instances=Reach(instances),
        rights=ProxyRights(world.authoriser),
        callers=Everybody(),
        audit=ProxyAudit(spool),
        reads=IndexedReads(index, collected),
        writes=NotedWrites(index, collected),
    )
