"""Which services there are, and what they are made of."""

from kairship.apiserver.registry import Registry
from kairship.kube import Client


def assemble(client: Client) -> Registry:
    """`client` is the one of the global cluster."""
    return Registry({})
