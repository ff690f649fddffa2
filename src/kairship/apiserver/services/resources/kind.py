"""The description of a kind: everything that differs from kind to kind, and nothing that does not.

A `Kind` is a constant (see `kairship.apiserver.services.kinds`). Operations take one and do the rest.
"""

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


class TargetClusters(msgspec.Struct, frozen=True):
    """The member clusters that Karmada has scheduled an object to."""

    clusters: tuple[ClusterProviderSummary, ...] = ()
    replicas: int = 0
    """The sum of the replicas that the binding assigns to all clusters."""


NO_TARGET_CLUSTERS = TargetClusters()

View = Callable[[Object, TargetClusters], Message[Any]]
"""Makes the message that callers see from an object and its target clusters. Pure."""

Filter = Callable[[Any], Predicate | None]
"""Makes a predicate on objects from a list request; None if the request does not ask for this filter. Pure."""

PatchFunction = Callable[[Object, dt.datetime], Object]
"""Makes a merge patch from the current object and the current time. Pure; raises an `ApiError` to refuse."""

DeleteGuard = Callable[[Object, Client, Call], Awaitable[None]]
"""Raises an `ApiError` if the object must not be deleted. The client is the instance's."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    resource: Resource
    message: type[Message[Any]]
    """The message that `view` returns."""
    view: View
    shows_target_clusters: bool = False
    """Whether the view shows target clusters. If not, bindings are not read."""
    sort_keys: Mapping[SortBy, Callable[[Object], Any]] = field(default_factory=dict)
    """Sort keys in addition to name, namespace and age, which every kind has."""
    filters: tuple[Filter, ...] = ()
    """Filters in addition to the name, which every kind has."""
    guard_delete: DeleteGuard | None = None
