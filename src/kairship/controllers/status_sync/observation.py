"""One look at an instance: its components, its members, and whether it answers.

Only the components are asked for, within a timeout; the rest is known from what is followed all the time. What cannot
be found out is said to be so; nothing here raises for what is wrong with an instance.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from kairship.controllers.inside import Inside, Insides, KarmadaCluster
from kairship.instances.drivers import ComponentHealth, Driver, DriverError
from kairship.instances.pool_health import Health, TargetKind
from kairship.kube import KubeError
from kairship.supervisor import SupervisorError


class Reach(Protocol):
    """How instances are reached, by name: the pool."""

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


async def observe(
    driver: Driver | None, reach: Reach, insides: Insides, *, name: str, uid: str, timeout: float
) -> Observation:
    components = await _components(driver, uid, timeout)
    health = reach.health(TargetKind.INSTANCE, name)
    return Observation(reach=health, components=components, members=_members(health, insides.get(name)))


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


def _members(health: Health, inside: Inside | None) -> Sequence[Member] | Unasked:
    """From what is followed anyway: asking each time would cost more than all else."""
    if not health.reachable:
        return Unasked(str(health.refusal()))
    if inside is None:
        return Unasked("the instance is being looked at")
    if inside.clusters.problem is not None:
        return Unasked(inside.clusters.problem)
    return [_member(cluster) for cluster in inside.clusters.store]


def _member(cluster: KarmadaCluster) -> Member:
    ready = cluster.status.find("Ready")
    if ready is None:
        return Member(cluster.metadata.name, ready=False, message="Karmada has not looked at it yet")
    return Member(cluster.metadata.name, ready.status == "True", ready.message)
