"""Our own kinds as the client asks for them."""

from kairship.kube import Resource
from kairship.resources import Definition


def resource_of(definition: Definition) -> Resource:
    """All of our kinds belong to the whole cluster."""
    return Resource.of(definition.api_version, definition.plural, kind=definition.kind, namespaced=False)
