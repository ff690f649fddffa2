"""The `Resource` by which the client finds one of our own kinds."""

from kairship.kube import Resource
from kairship.resources import Definition


def resource_of(definition: Definition) -> Resource:
    """All of our kinds are cluster-scoped."""
    return Resource.of(definition.api_version, definition.plural, kind=definition.kind, namespaced=False)
