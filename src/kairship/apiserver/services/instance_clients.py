"""The clients by which services reach the API servers of instances.

Everything that services do in an instance goes through here. They read the instance with the plane's own credential,
because the entrance has authorised the caller for exactly what is read. Everything else they do as the caller, so that
the RBAC of the instance or member authorises the caller a second time, and its audit log says who it was: all writes,
and all reads in members.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar
from urllib.parse import quote

from kairship.apiserver.auth.authorisation import no_instance
from kairship.apiserver.auth.impersonation import person_inside
from kairship.apiserver.auth.late_grants import PROPAGATION_SECONDS, is_rbac_refusal
from kairship.instances.pool import NotConnected, Reason
from kairship.kube import Client, Forbidden, Resource, kinds
from kairship.rpc.calls import Call
from kairship.rpc.errors import PermissionDenied, Unavailable

FIELD_MANAGER = "kairship"
_RIGHTS_DELAY = PROPAGATION_SECONDS
_RETRY_INTERVAL = 0.2

T = TypeVar("T")


class Pool(Protocol):
    """The part of `instances.Pool` that services use."""

    def instance(self, name: str) -> Client: ...


class InstanceClients:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def instance(self, name: str) -> Client:
        """Returns the client for the next call only: get it again for each call.

        Raises `NotFound` if there is no such instance, `Unavailable` if it cannot be reached now.
        """
        try:
            return self._pool.instance(name)
        except NotConnected as refusal:
            if refusal.reason is Reason.UNKNOWN:
                raise no_instance(name) from None
            raise Unavailable(f"{refusal}; see the conditions of the instance", retry_after=2.0) from None

    async def as_caller(self, name: str, call: Call, request: Callable[[Client], Awaitable[T]]) -> T:
        """Makes a request to an instance, or through it to a member, as the caller.

        A right that was granted a moment ago may not have arrived there yet. A request that RBAC has refused has
        changed nothing, so it is retried for a while: `request` is called again. It must make one writing call, or be
        able to begin anew.
        """
        person = person_inside(call.caller.id, call.groups_inside)
        give_up = min(time.monotonic() + _RIGHTS_DELAY, call.deadline)
        while True:
            try:
                return await request(self.instance(name).impersonating(person))
            except Forbidden as refused:
                if not is_rbac_refusal(refused.message, person):
                    raise  # admission has refused the object; the caller has the right
                if time.monotonic() >= give_up:
                    raise PermissionDenied(
                        f"instance {name} does not let you do this: your rights have not arrived there yet, or were "
                        "removed inside it; try again, and if that does not help, ask an administrator of the instance "
                        "to look at its conditions"
                    ) from refused
            await asyncio.sleep(_RETRY_INTERVAL)


class MemberResource(Resource, frozen=True):
    """A resource of a member cluster, reached through the cluster proxy of Karmada's API server."""

    cluster: str

    @classmethod
    def at(cls, cluster: str, resource: Resource) -> "MemberResource":
        return cls(resource.group, resource.version, resource.plural, resource.kind, resource.namespaced, cluster)

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        # With something that is not a name, such as `*` or `..`, Karmada's proxy would lead somewhere else.
        member = kinds.CLUSTERS.path(name=self.cluster, subresource="proxy")
        if quote(self.cluster, safe="") != self.cluster or not self.cluster[0].isalnum():
            raise ValueError(f"{self.cluster!r} cannot be the name of a cluster")
        return member + super().path(namespace=namespace, name=name, subresource=subresource)
