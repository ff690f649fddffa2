"""Probes an instance: its components, its members, and whether it answers.

Only the components are requested, within a timeout; the rest is in the pool and in the caches. What cannot be found out
is `NotObserved`; a broken instance raises no exception here.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kairship.controllers.instance_cache import InstanceCache, InstanceCaches, KarmadaCluster
from kairship.instances.drivers import ComponentHealth, Driver, DriverError
from kairship.instances.pool import Health, Pool, TargetKind
from kairship.kube import KubeError
from kairship.supervisor import SupervisorError


class NotObserved(msgspec.Struct, frozen=True):
    """Something that could not be found out, and the reason."""

    why: str


class Member(msgspec.Struct, frozen=True):
    name: str
    ready: bool
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The result of one probe."""

    health: Health
    components: Sequence[ComponentHealth] | NotObserved
    members: Sequence[Member] | NotObserved


async def observe(
    driver: Driver | None, pool: Pool, instance_caches: InstanceCaches, *, name: str, uid: str, timeout: float
) -> Observation:
    components = await _components(driver, uid, timeout)
    health = pool.health(TargetKind.INSTANCE, name)
    return Observation(health=health, components=components, members=_members(health, instance_caches.get(name)))


async def _components(driver: Driver | None, uid: str, timeout: float) -> Sequence[ComponentHealth] | NotObserved:
    if driver is None:
        return NotObserved("this controller-manager does not have the driver of the instance")
    try:
        async with asyncio.timeout(timeout):
            return await driver.health(uid)
    except TimeoutError:
        return NotObserved(f"the driver did not answer within {timeout:g} s")
    except (DriverError, SupervisorError, KubeError) as error:
        return NotObserved(str(error))


def _members(health: Health, cache: InstanceCache | None) -> Sequence[Member] | NotObserved:
    """The members from the cache of the instance: a request for each probe would cost more than everything else."""
    if not health.reachable:
        return NotObserved(str(health.not_connected()))
    if cache is None:
        return NotObserved("the instance is being read; this takes a moment")
    if cache.clusters.problem is not None:
        return NotObserved(cache.clusters.problem)
    return [_member(cluster) for cluster in cache.clusters.store]


def _member(cluster: KarmadaCluster) -> Member:
    ready = cluster.status.find("Ready")
    if ready is None:
        return Member(cluster.metadata.name, ready=False, message="Karmada has not checked it yet")
    return Member(cluster.metadata.name, ready.status == "True", ready.message)
