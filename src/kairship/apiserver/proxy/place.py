"""Where something is that is read: in the index, and in the cluster itself."""

import msgspec

from kairship.apiserver.services.reach import InMember
from kairship.index import Current
from kairship.kube import Resource


class Place(msgspec.Struct, frozen=True, kw_only=True):
    current: Current
    cluster: str
    """The uid under which the index has the cluster that is read."""
    instance: str
    """The uid of the virtual cluster of the instance: the same, or the one that has the member."""
    member: str | None
    resource: Resource
    namespace: str | None

    @property
    def reached(self) -> Resource:
        """The kind as it is reached through the instance."""
        return self.resource if self.member is None else InMember.at(self.member, self.resource)
