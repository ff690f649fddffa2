"""The way from a request to an API server: the client of an instance.

Everything that services do in an instance goes through here. What is read is read with the plane's own credential: the
entrance has authorised the caller before. What is written is written as the caller, so that the instance's own rights
are asked a second time, and its own audit says who it was.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar
from urllib.parse import quote

from kairship.apiserver.authorisation import no_instance
from kairship.apiserver.inside import person_inside
from kairship.instances.pool import NotConnected, Reason
from kairship.kube import Client, Forbidden, Resource, kinds
from kairship.rpc.calls import Call
from kairship.rpc.errors import PermissionDenied, Unavailable

FIELD_MANAGER = "kairship"
_ON_ITS_WAY = 5.0
"""Seconds in which a right arrives in an instance that can be reached."""
_PAUSE = 0.2

T = TypeVar("T")


class Pool(Protocol):
    """The part of `instances.Pool` that services use."""

    def instance(self, name: str) -> Client: ...


class Reach:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def instance(self, name: str) -> Client:
        """For the next call only: ask again each time."""
        try:
            return self._pool.instance(name)
        except NotConnected as refusal:
            if refusal.reason is Reason.UNKNOWN:
                raise no_instance(name) from None
            raise Unavailable(f"{refusal}; see the conditions of the instance", retry_after=2.0) from None

    async def acting(self, name: str, call: Call, act: Callable[[Client], Awaitable[T]]) -> T:
        """Write something in an instance as the caller.

        A right that was given a moment ago may still be on its way there. What was refused for want of it has not
        happened, so it is tried again for a while; `act` must be one call that changes something, or begin anew.
        """
        person = person_inside(call.caller.id, call.groups_inside)
        give_up = min(time.monotonic() + _ON_ITS_WAY, call.deadline)
        while True:
            try:
                return await act(self.instance(name).impersonating(person))
            except Forbidden as refused:
                if f'User "{person.user}" cannot' not in refused.message:
                    raise  # admission: something is wrong with the object, not with the caller
                if time.monotonic() >= give_up:
                    raise PermissionDenied(
                        f"instance {name} does not let you do this: your rights have not arrived there yet, or were "
                        "taken away inside it; try again, and look at the conditions of the instance"
                    ) from refused
            await asyncio.sleep(_PAUSE)


class InMember(Resource, frozen=True):
    """A kind in a member cluster, as it is reached through Karmada's cluster proxy."""

    cluster: str

    @classmethod
    def at(cls, cluster: str, resource: Resource) -> "InMember":
        return cls(resource.group, resource.version, resource.plural, resource.kind, resource.namespaced, cluster)

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        # One name that is none, such as `*` or `..`, and Karmada's proxy leads to somewhere else.
        member = kinds.CLUSTERS.path(name=self.cluster, subresource="proxy")
        if quote(self.cluster, safe="") != self.cluster or not self.cluster[0].isalnum():
            raise ValueError(f"{self.cluster!r} cannot be the name of a cluster")
        return member + super().path(namespace=namespace, name=name, subresource=subresource)
