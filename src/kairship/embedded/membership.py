"""Registers member clusters with container management and joins them to the demo instance.

This uses the same custom resources, `Cluster` and `Membership`, that users create with kubectl or the API; the
membership controller does the work. Everything is idempotent, so `up` completes what was interrupted.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from kairship.controllers.global_cluster import CLUSTER, MEMBERSHIP
from kairship.instances.drivers.polling import until
from kairship.kube import Client, Connection, Forbidden, NotFound, kinds
from kairship.resources import (
    KUBECONFIG,
    NAMESPACE,
    Membership,
    MembershipCondition,
    MembershipPhase,
    find_condition,
    is_true,
)

FIELD_MANAGER = "kairship"
_POLL = 0.2
_LEAVE_TIMEOUT = 120.0
_REQUIRED = (MembershipCondition.JOINED, MembershipCondition.READY)
_NOT_RECONCILED = "the membership controller has not seen it yet"


class MembershipError(Exception):
    """The cluster could not join; the message says why."""


class InstanceMembership:
    """Joins clusters to one instance, and takes them out of it."""

    def __init__(self, client: Client, instance: str) -> None:
        """`client` is a client of the global cluster."""
        self._client = client
        self._instance = instance

    async def join(self, name: str, connection: Connection, **spec: Any) -> None:
        """Register the cluster and create its Membership."""
        secret = f"cluster-{name}"
        kubeconfig = connection.to_kubeconfig(name=name).decode()
        content = {"metadata": {"name": secret}, "stringData": {KUBECONFIG: kubeconfig}}
        await self._client.apply(kinds.SECRETS, content, namespace=NAMESPACE, field_manager=FIELD_MANAGER)
        described = {
            "metadata": {"name": name, "labels": {"kairship.io/demo": "true"}},
            "spec": {"credentials": {"name": secret}, **spec},
        }
        await self._client.apply(CLUSTER, described, field_manager=FIELD_MANAGER)
        membership = {"metadata": {"name": name}, "spec": {"instance": self._instance}}
        await self._client.apply(MEMBERSHIP, membership, field_manager=FIELD_MANAGER)

    async def wait_ready(self, name: str, on_wait: Callable[[str], None], *, timeout: float) -> None:
        """Return when Karmada finds the cluster ready. `on_wait` is called with what is still missing."""
        deadline = time.monotonic() + timeout
        while True:
            membership = await self._client.typed(Membership).get(MEMBERSHIP, name)
            waiting = _waiting_for(membership)
            if not waiting:
                return
            if membership.status.phase is MembershipPhase.FAILED:
                raise MembershipError(f"cluster {name} cannot join: {waiting}")
            if time.monotonic() > deadline:
                raise MembershipError(f"cluster {name} was not ready within {timeout:g} s: {waiting}")
            on_wait(waiting)
            await asyncio.sleep(_POLL)

    async def leave(self, name: str, *, force: bool) -> None:
        """Remove the cluster from the instance and from container management. Returns when its objects are gone."""
        try:
            await self._client.patch(MEMBERSHIP, name, {"spec": {"force": force}})
            await self._client.delete(MEMBERSHIP, name)
        except NotFound:
            pass  # it was never created, or an earlier attempt deleted it
        await until(lambda: self._leaving(name), what=f"cluster {name} leaving", timeout=_LEAVE_TIMEOUT)
        await until(lambda: self._deregistered(name), what=f"cluster {name} being deregistered", timeout=_LEAVE_TIMEOUT)
        await self._client.delete(kinds.SECRETS, f"cluster-{name}", namespace=NAMESPACE, missing_ok=True)

    async def _leaving(self, name: str) -> str | None:
        try:
            membership = await self._client.typed(Membership).get(MEMBERSHIP, name)
        except NotFound:
            return None
        leaving = find_condition(membership.status.conditions, MembershipCondition.LEAVING)
        return leaving.message or leaving.reason if leaving is not None else _NOT_RECONCILED

    async def _deregistered(self, name: str) -> str | None:
        try:
            await self._client.delete(CLUSTER, name)
        except NotFound:
            return None
        except Forbidden as error:
            return str(error)  # the admission policy may still see the Membership for a moment
        return "container management is removing it"


def _waiting_for(membership: Membership) -> str:
    """What keeps the membership from being ready; empty if it is ready."""
    conditions = membership.status.conditions
    for kind in _REQUIRED:
        if not is_true(conditions, kind):
            found = find_condition(conditions, kind)
            return (found.message or found.reason) if found is not None else _NOT_RECONCILED
    return ""
