"""A kind of object, described: everything that differs from kind to kind, and nothing that does not."""

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from protobuf import Message

from kairship.gen.kairship.cluster.v1alpha1.cluster_pb import ClusterProviderSummary
from kairship.gen.kairship.types.v1alpha1.list_pb import SortBy
from kairship.kube import Client, Object, Resource
from kairship.rpc.calls import Call

Predicate = Callable[[Object], bool]


class Placed(msgspec.Struct, frozen=True):
    """Where an object went."""

    clusters: tuple[ClusterProviderSummary, ...] = ()
    replicas: int = 0
    """How many replicas the clusters shall have in all."""


NOWHERE = Placed()

View = Callable[[Object, Placed], Message[Any]]
"""From an object, and where it was placed, to what callers see. Pure."""

Filter = Callable[[Any], Predicate | None]
"""From a request for a list to what an item must fulfil; None if the request does not ask for it. Pure."""

Action = Callable[[Object, dt.datetime], Object]
"""From an object to the merge patch that does something to it. Pure; raises an `ApiError` if it cannot be done now."""

Guard = Callable[[Object, Client, Call], Awaitable[None]]
"""Raises an `ApiError` if an object must not be deleted."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    resource: Resource
    message: type[Message[Any]]
    plural: str
    """As methods have it in their names: Deployments."""
    view: View
    is_placed: bool = False
    """Whether the view tells where an object was placed."""
    sort_keys: Mapping[SortBy, Callable[[Object], Any]] = field(default_factory=dict)
    """Beside name, namespace and age, which all have."""
    filters: tuple[Filter, ...] = ()
    """Beside the name, which all have."""
    actions: Mapping[str, Action] = field(default_factory=dict)
    """By the word that methods have for it: Pause."""
    guard_delete: Guard | None = None

    @property
    def singular(self) -> str:
        """As methods have it in their names: Deployment."""
        return self.message.desc().name
