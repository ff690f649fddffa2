"""`kairship kpanda` as processes: killed, restarted, several at once, and what they leave behind."""

import asyncio
import base64
import signal
import time
from functools import partial
from pathlib import Path

import grpc
import pytest
from support.container_management import CLUSTER, condition, is_ready
from support.index_stores import postgres
from support.kpanda_process import kpanda_process
from support.postgres import new_database
from support.waiting import PATIENCE, eventually

from kairship.embedded import EmbeddedPlane
from kairship.index.postgres import PostgresStore
from kairship.kpanda.sharding.replicas import LEASE_PREFIX
from kairship.kube import Client, Connection, Object, kinds
from kairship.resources import NAMESPACE

__all__ = ["postgres"]


async def put(world: Client, name: str, connection: Connection) -> Object:
    """Creates a Cluster and its Secret, as kubectl does."""
    kubeconfig = base64.b64encode(connection.to_kubeconfig(name="x")).decode()
    secret: Object = {"metadata": {"name": f"of-{name}"}, "data": {"kubeconfig": kubeconfig}}
    await world.apply(kinds.SECRETS, secret, namespace=NAMESPACE, field_manager="test")
    return await world.create(CLUSTER, {"metadata": {"name": name}, "spec": {"credentials": {"name": f"of-{name}"}}})


async def ready(world: Client, name: str, *, timeout: float = PATIENCE) -> Object:
    async def look() -> Object | None:
        found = await world.get(CLUSTER, name)
        return found if is_ready(found) else None

    found: Object = await eventually(look, f"cluster {name}", timeout=timeout)
    return found


async def members(plane: EmbeddedPlane) -> dict[str, Connection]:
    return {spec.name: await plane.members.connection(spec.name) for spec in plane.members.specs()}


async def test_one_process_on_files(home: Connection, plane: EmbeddedPlane, tmp_path: Path) -> None:
    index = tmp_path / "index"
    one, two = (await members(plane)).items()
    async with Client(home) as world:
        async with kpanda_process(home, tmp_path / "a", "--index", str(index)) as first:
            await first.until_ready()
            uids = [(await put(world, *each))["metadata"]["uid"] for each in (one, two)]
            for name, _ in (one, two):
                await ready(world, name)
            assert all((index / uid).is_dir() for uid in uids)

            # Another process does not touch the directory, and says why.
            async with kpanda_process(home, tmp_path / "b", "--index", str(index)) as second:
                assert await asyncio.wait_for(second.process.wait(), PATIENCE) == 2
            # gRPC is only for processes of the plane.
            port = (await first.until("serving"))["port"]
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as plain:
                call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = plain.unary_unary(
                    "/kairship.kpanda.v1alpha1.Clusters/ListClusters"
                )
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(b"", timeout=5)
            _, figures = await first.get("/metrics")
            assert f'kairship_collector_live{{cluster="{one[0]}",kind="nodes"}} 1.0' in figures
            assert f'kairship_collector_resyncs_total{{cluster="{one[0]}",kind="nodes"}} 0.0' in figures
            await first.end(signal.SIGKILL)

        # One cluster is removed while no process runs. The index of the other one is still there.
        await world.delete(CLUSTER, one[0])
        async with kpanda_process(home, tmp_path / "a", "--index", str(index)) as again:
            await again.until_ready()

            async def swept() -> bool:
                return not (index / uids[0]).exists()

            await eventually(swept, "the end of what is left of a removed cluster")
            assert (index / uids[1]).is_dir()
            assert await again.end() == 0
        await world.delete(CLUSTER, two[0])


async def test_replicas_on_a_database(home: Connection, plane: EmbeddedPlane, tmp_path: Path, postgres: str) -> None:
    """Replicas divide the clusters, and another replica takes over the shard of a killed one within 12 s."""
    url = await asyncio.to_thread(new_database, postgres)
    (tmp_path / "url").write_text(url)
    flags = ("--index-url-file", str(tmp_path / "url"))
    clusters = await members(plane)
    async with (
        Client(home) as world,
        await PostgresStore.open(url) as store,
        kpanda_process(home, tmp_path / "a", *flags) as first,
        kpanda_process(home, tmp_path / "b", *flags) as second,
    ):
        holders = {(await each.until("serving"))["holder"]: each for each in (first, second)}
        for each in (first, second):
            await each.until_ready()
        for name, connection in clusters.items():
            await put(world, name, connection)
        held = {name: (await ready(world, name))["status"]["collector"]["holder"] for name in clusters}
        assert set(held.values()) <= set(holders)

        victim = held[next(iter(clusters))]
        lost = [name for name, holder in held.items() if holder == victim]
        (survivor,) = [holder for holder in holders if holder != victim]
        began = time.monotonic()
        await holders[victim].end(signal.SIGKILL)

        async def taken_over(name: str) -> bool:
            found = await world.get(CLUSTER, name)
            uid = found["metadata"]["uid"]
            async with store.index().snapshot(uid) as snapshot:
                part = await snapshot.partition("nodes")
            held_by = found["status"]["collector"]["holder"]
            fresh = part is not None and part.live and part.confirmed_at > began_wall
            return held_by == survivor and fresh

        began_wall = time.time()
        for name in lost:
            await eventually(partial(taken_over, name), f"the takeover of {name}", timeout=20)
        took = time.monotonic() - began
        assert took < 12, f"it took {took:.1f} s"
        for name in clusters:
            assert condition(await ready(world, name), "Collected") == ("True", "Current")

        # A replica that ends in order hands its shard over at once.
        async with kpanda_process(home, tmp_path / "c", *flags) as third:
            await third.until_ready()
            assert await holders[survivor].end() == 0
            lease = await world.get(kinds.LEASES, f"{LEASE_PREFIX}{survivor}", namespace=NAMESPACE)
            assert not lease["spec"]["holderIdentity"], holders[survivor].log_end()

            async def all_its_own() -> bool:
                holder = (await third.until("serving"))["holder"]
                found = [await world.get(CLUSTER, name) for name in clusters]
                return all(each["status"]["collector"]["holder"] == holder for each in found)

            # The Lease that was given back is the proof that nobody had to wait for its end.
            await eventually(all_its_own, "the handing over")
        for name in clusters:
            await world.delete(CLUSTER, name)
