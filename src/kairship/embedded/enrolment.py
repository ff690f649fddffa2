"""Members of the demo as clusters of the plane: registered with container management, and joined by a Membership.

What anybody does with kubectl or the API is done here with the same custom resources; the membership controller carries
it out. Everything is idempotent, so `up` completes what was interrupted.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from kairship.controllers.global_cluster import CLUSTER, MEMBERSHIP
from kairship.instances.drivers.waiting import until
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
_LEAVING = 120.0
_SETTLED = (MembershipCondition.JOINED, MembershipCondition.READY)


class NotEnrolled(Exception):  # noqa: N818 - says what is the case
    """The cluster could not join or leave; the message says why."""


class Enrolment:
    """Of clusters in one instance. `client` is one of the global cluster."""

    def __init__(self, client: Client, instance: str) -> None:
        self._client = client
        self._instance = instance

    async def enrol(self, name: str, connection: Connection, **spec: Any) -> None:
        """Register the cluster and ask for its membership."""
        secret = f"cluster-{name}"
        kubeconfig = connection.to_kubeconfig(name=name).decode()
        content = {"metadata": {"name": secret}, "stringData": {KUBECONFIG: kubeconfig}}
        await self._client.apply(kinds.SECRETS, content, namespace=NAMESPACE, field_manager=FIELD_MANAGER)
        described = {
            "metadata": {"name": name, "labels": {"kairship.io/demo": "true"}},
            "spec": {"credentials": {"name": secret}, **spec},
        }
        await self._client.apply(CLUSTER, described, field_manager=FIELD_MANAGER)
        wish = {"metadata": {"name": name}, "spec": {"instance": self._instance}}
        await self._client.apply(MEMBERSHIP, wish, field_manager=FIELD_MANAGER)

    async def wait_ready(self, name: str, tell: Callable[[str], None], *, timeout: float) -> None:
        """Return when Karmada has found the cluster ready. `tell` hears what it waits for."""
        deadline = time.monotonic() + timeout
        while True:
            membership = await self._client.get(MEMBERSHIP, name, as_type=Membership)
            waiting = _waiting_for(membership)
            if not waiting:
                return
            if membership.status.phase is MembershipPhase.FAILED:
                raise NotEnrolled(f"cluster {name} cannot join: {waiting}")
            if time.monotonic() > deadline:
                raise NotEnrolled(f"cluster {name} was not ready within {timeout:g} s: {waiting}")
            tell(waiting)
            await asyncio.sleep(_POLL)

    async def withdraw(self, name: str, *, force: bool) -> None:
        """Take the cluster out of the instance and of container management. Returns when nothing of it is left."""
        try:
            await self._client.patch(MEMBERSHIP, name, {"spec": {"force": force}})
            await self._client.delete(MEMBERSHIP, name)
        except NotFound:
            pass  # it had not come so far, or an earlier attempt did
        await until(lambda: self._leaving(name), what=f"cluster {name} leaving", timeout=_LEAVING)
        await until(lambda: self._forgotten(name), what=f"cluster {name} being forgotten", timeout=_LEAVING)
        await self._client.delete(kinds.SECRETS, f"cluster-{name}", namespace=NAMESPACE, missing_ok=True)

    async def _leaving(self, name: str) -> str | None:
        try:
            membership = await self._client.get(MEMBERSHIP, name, as_type=Membership)
        except NotFound:
            return None
        leaving = find_condition(membership.status.conditions, MembershipCondition.LEAVING)
        return leaving.message or leaving.reason if leaving is not None else "nobody has looked at it yet"

    async def _forgotten(self, name: str) -> str | None:
        try:
            await self._client.delete(CLUSTER, name)
        except NotFound:
            return None
        except Forbidden as error:
            return str(error)  # the policy that keeps clusters with memberships hears late that there is none
        return "container management lets it go"


def _waiting_for(membership: Membership) -> str:
    """What keeps it from being ready; empty if nothing does."""
    conditions = membership.status.conditions
    for kind in _SETTLED:
        if not is_true(conditions, kind):
            found = find_condition(conditions, kind)
            return (found.message or found.reason) if found is not None else "nobody has looked at it yet"
    return ""
