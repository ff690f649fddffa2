"""One look at an instance from outside: its components, its members, and whether it answers.

Each question has a timeout of its own and all are asked at once, so that a look lasts no longer than the slowest of
them may. What cannot be found out is said to be so; nothing here raises for what is wrong with an instance.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from kairship.instances.drivers import ComponentHealth, Driver, DriverError
from kairship.instances.pool_health import Health, NotConnected, TargetKind
from kairship.kube import Client, KubeError, kinds
from kairship.supervisor import SupervisorError

T = TypeVar("T")


class Reach(Protocol):
    """The way to instances by name: the pool."""

    def instance(self, name: str) -> Client:
        """Raises `NotConnected`."""
        ...

    def health(self, kind: TargetKind, name: str) -> Health: ...


class Unasked(msgspec.Struct, frozen=True):
    """A question that could not be answered, and why."""

    why: str


class Member(msgspec.Struct, frozen=True):
    name: str
    ready: bool
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Observation:
    reach: Health
    components: Sequence[ComponentHealth] | Unasked
    members: Sequence[Member] | Unasked


async def observe(driver: Driver | None, reach: Reach, *, name: str, uid: str, timeout: float) -> Observation:
    async with asyncio.TaskGroup() as questions:
        components = questions.create_task(_components(driver, uid, timeout))
        members = questions.create_task(_members(reach, name, timeout))
    return Observation(
        reach=reach.health(TargetKind.INSTANCE, name), components=components.result(), members=members.result()
    )


async def _components(driver: Driver | None, uid: str, timeout: float) -> Sequence[ComponentHealth] | Unasked:
    if driver is None:
        return Unasked("this controller-manager does not have the driver of the instance")
    try:
        async with asyncio.timeout(timeout):
            return await driver.health(uid)
    except TimeoutError:
        return Unasked(f"the driver did not answer within {timeout:g} s")
    except (DriverError, SupervisorError, KubeError) as error:
        return Unasked(str(error))


class _Condition(msgspec.Struct):
    type: str
    status: str
    message: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _Name(msgspec.Struct):
    name: str


class _Cluster(msgspec.Struct):
    """A member as Karmada knows it."""

    metadata: _Name
    status: _Status = msgspec.field(default_factory=_Status)


async def _members(reach: Reach, name: str, timeout: float) -> Sequence[Member] | Unasked:
    try:
        page = await reach.instance(name).list(kinds.CLUSTERS, as_type=_Cluster, timeout=timeout)
    except (NotConnected, KubeError) as error:
        return Unasked(str(error))
    return [_member(cluster) for cluster in page.items]


def _member(cluster: _Cluster) -> Member:
    for condition in cluster.status.conditions or ():
        if condition.type == "Ready":
            return Member(cluster.metadata.name, condition.status == "True", condition.message)
    return Member(cluster.metadata.name, ready=False, message="Karmada has not looked at it yet")
