"""The cluster, kind and namespace that one read is about, in the index and in the cluster itself."""

import msgspec

from kairship.apiserver.services.instance_clients import MemberResource
from kairship.index import CurrentIndex
from kairship.kube import Resource


class ReadSource(msgspec.Struct, frozen=True, kw_only=True):
    current: CurrentIndex
    cluster: str
    """The uid under which the index has the cluster that is read."""
    instance: str
    """The uid of the instance's virtual cluster: the same, or the one that the member belongs to."""
    member: str | None
    """The name of the member; None if the instance itself is read."""
    resource: Resource
    namespace: str | None
    reserved: bool
    """Whether reserved namespaces are among those that are read."""

    @property
    def upstream_resource(self) -> Resource:
        """The kind as the instance's API server serves it: that of a member is below Karmada's cluster proxy."""
        return self.resource if self.member is None else MemberResource.at(self.member, self.resource)
