"""The way from a request to an API server: the client of an instance.

Everything that services do in an instance goes through here. It is done with the plane's own credential: the entrance
has authorised the caller before. Once bindings are written into the instances as RBAC, this is the one place that has
to act as the caller.
"""

from typing import Protocol
from urllib.parse import quote

from kairship.apiserver.authorisation import no_instance
from kairship.instances.pool import NotConnected, Reason
from kairship.kube import Client, Resource, kinds
from kairship.rpc.errors import Unavailable

FIELD_MANAGER = "kairship"


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
