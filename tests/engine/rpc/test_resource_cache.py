"""The cache of our kinds: the next read sees a write, even when the watch has stopped."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from support.services import ALICE, INSTANCE, Api, discard
from support.waiting import eventually

from kairship.kube import Client
from kairship.reconcile import Metrics, SystemClock
from kairship.rpc.calls import Call
from kairship.rpc.resource_cache import ResourceCaches
from kairship.wire import methods

pytestmark = pytest.mark.asyncio(loop_scope="module")

METHOD = methods()["/kairship.v1alpha1.Instance/GetInstance"]


def call() -> Call:
    return Call(request_id="test", caller=ALICE, method=METHOD, deadline=time.monotonic() + 30)


@asynccontextmanager
async def following(client: Client) -> AsyncIterator[tuple[ResourceCaches, asyncio.Task[None]]]:
    own = ResourceCaches(client, clock=SystemClock(), metrics=Metrics())
    running = asyncio.create_task(own.run())
    try:
        await own.wait_synced()
        yield own, running
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_before_anything_is_in_memory_it_is_read(api: Api) -> None:
    own = ResourceCaches(api.world, clock=SystemClock(), metrics=Metrics())
    assert await own.instances.get("demo", call()) is not None
    assert await own.instances.get("nobody", call()) is None
    assert "demo" in {seen.metadata.name for seen in await own.instances.all(call())}


async def test_a_watch_that_has_died_hides_no_write(api: Api) -> None:
    name = f"unseen-{uuid.uuid4().hex[:8]}"
    async with following(api.world) as (own, running):
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        created = await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})
        try:
            began = time.monotonic()
            await own.instances.written(name, created["metadata"]["resourceVersion"], call())
            assert time.monotonic() - began < 30  # it does not wait for ever
            assert await own.instances.get(name, call()) is not None
            assert name in {seen.metadata.name for seen in await own.instances.all(call())}
        finally:
            await discard(api.world, name)
        await own.instances.deleted(name, created["metadata"]["uid"], call())
        assert await own.instances.get(name, call()) is None


async def test_what_another_process_has_just_made_can_be_asked_for(api: Api) -> None:
    name = f"just-{uuid.uuid4().hex[:8]}"
    async with following(api.world) as (own, running):
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await own.instances.wait_for_latest(name, call())
        await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})
        try:
            assert name not in {seen.metadata.name for seen in await own.instances.all(call())}
            await own.instances.wait_for_latest(name, call())
            assert name in {seen.metadata.name for seen in await own.instances.all(call())}
        finally:
            await discard(api.world, name)


async def test_a_write_of_another_replica_arrives_by_the_watch(api: Api) -> None:
    name = f"other-{uuid.uuid4().hex[:8]}"
    async with following(api.world) as (own, _):
        await api.world.create(INSTANCE, {"metadata": {"name": name}, "spec": {"driver": "operator"}})
        try:
            await eventually(lambda: own.instances.get(name, call()), "the instance in memory")
        finally:
            await discard(api.world, name)
