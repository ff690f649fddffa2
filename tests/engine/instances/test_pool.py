"""The pool against real instances and clusters: the demo instance, its members, and a network between that breaks."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from support.certificates import Authority
from support.our_kinds import SERVED, Kube, cluster, install, instance, own_objects, write_status
from support.relay import Relay, relay_to
from support.waiting import PATIENCE, eventually
from yarl import URL

from kairship.controlplane.pki import Pki
from kairship.embedded import EmbeddedPlane
from kairship.instances.pool import Health, NotConnected, Pool, PoolMetrics, PoolSettings, Reason, TargetKind
from kairship.instances.pool.sources import connection_from
from kairship.kube import AddressRule, AlreadyExists, Client, ClientClosed, Connection, Resource, TimedOut, kinds
from kairship.reconcile import Metrics, SystemClock
from kairship.resources import NAMESPACE, InstanceStatus, SecretReference, Writer

FAST = PoolSettings(probe_interval=0.2, probe_timeout=1.0, retry_interval=0.1, grace=1.0)
PATIENT = msgspec.structs.replace(FAST, probe_timeout=30.0)
"""For tests in which no probe of a healthy target may fail: on a busy machine an answer may take more than a second."""
UNHURRIED = msgspec.structs.replace(FAST, probe_timeout=5.0)
"""For tests in which one target hangs, and no probe of another may fail."""
SELF = Resource.of("authentication.k8s.io/v1", "selfsubjectreviews", kind="SelfSubjectReview", namespaced=False)
INSTANCE, CLUSTER = TargetKind.INSTANCE, TargetKind.CLUSTER


class World:
    """The objects of one test in the global cluster. Their names, Secrets included, begin with `own`."""

    def __init__(self, client: Client, own: str) -> None:
        self.client = client
        self.own = own
        self._secrets: set[str] = set()

    async def secret(self, name: str, content: Connection | bytes) -> str:
        """Writes a Secret and returns its name."""
        kubeconfig = content.to_kubeconfig(name=name) if isinstance(content, Connection) else content
        data = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
        full = f"{self.own}-{name}"
        await self.client.apply(
            kinds.SECRETS,
            {"metadata": {"name": full, "namespace": NAMESPACE}, "data": data},
            field_manager="test",
        )
        self._secrets.add(full)
        return full

    async def instance(self, name: str, secret: str | None = None) -> str:
        # With a driver that no controller of a test has, so that nothing else writes its status.
        full = f"{self.own}-{name}"
        await self.client.create(SERVED["Instance"], instance(self.own, full, driver="operator"))
        if secret is not None:
            status = InstanceStatus(credentials=SecretReference(name=secret))
            await write_status(self.client, full, Writer.LIFECYCLE, status)
        return full

    async def cluster(self, name: str, secret: str, **spec: Any) -> str:
        full = f"{self.own}-{name}"
        await self.client.create(SERVED["Cluster"], cluster(self.own, full, credentials={"name": secret}, **spec))
        return full

    async def remove_secrets(self) -> None:
        for name in self._secrets:
            await self.client.delete(kinds.SECRETS, name, namespace=NAMESPACE, missing_ok=True)


class Watched:
    """A running pool, and its notifications about the targets of one test."""

    def __init__(self, pool: Pool, own: str, registry: CollectorRegistry) -> None:
        self.pool = pool
        self.heard: list[tuple[str, Reason]] = []
        self._own = own
        self._registry = registry
        self._news = asyncio.Event()
        pool.subscribe(self._hear)

    def _hear(self, health: Health) -> None:
        if health.name.startswith(self._own):
            self.heard.append((health.name, health.reason))
            self._news.set()

    async def until(self, kind: TargetKind, name: str, reason: Reason, *, timeout: float = 90.0) -> Health:
        async with asyncio.timeout(timeout):
            while (health := self.pool.health(kind, name)).reason is not reason:
                self._news.clear()
                await self._news.wait()
        return health

    def metric(self, name: str, target: str) -> float | None:
        """The sum of a metric over all labels but the target's."""
        samples = [
            sample.value
            for family in self._registry.collect()
            for sample in family.samples
            if sample.name == name and sample.labels.get("name") == target
        ]
        return sum(samples) if samples else None

    def exposition(self) -> str:
        return generate_latest(self._registry).decode()


@pytest.fixture(scope="module", autouse=True)
def installed(kube: Kube) -> None:
    async def prepare() -> None:
        async with Client(kube.connection) as client:
            await install(client)
            with suppress(AlreadyExists):
                await client.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})

    asyncio.run(prepare())


@pytest.fixture
async def world(kube: Kube) -> AsyncIterator[World]:
    async with Client(kube.connection) as client, own_objects(client) as own:
        world = World(client, own)
        yield world
        await world.remove_secrets()


@asynccontextmanager
async def running(world: World, *, settings: PoolSettings = FAST, home: Client | None = None) -> AsyncIterator[Watched]:
    registry = CollectorRegistry()
    pool = Pool(
        home or world.client,
        clock=SystemClock(),
        metrics=Metrics(),
        pool_metrics=PoolMetrics(registry),
        settings=settings,
    )
    watched = Watched(pool, world.own, registry)
    task = asyncio.create_task(pool.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await pool.wait_synced()
        yield watched
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert world.own not in watched.exposition()


@asynccontextmanager
async def broken_way_to(connection: Connection) -> AsyncIterator[tuple[Relay, Connection]]:
    url = URL(connection.server)
    assert url.host
    assert url.port
    async with relay_to(url.host, url.port) as relay:
        yield relay, msgspec.structs.replace(connection, server=f"https://{relay.address}")


async def identity_of(client: Client) -> str:
    """The UID of the namespace that identifies a cluster."""
    namespace = await client.get(kinds.NAMESPACES, "kube-system")
    return str(namespace["metadata"]["uid"])


async def user_of(client: Client) -> str:
    review = await client.create(SELF, {})
    return str(review["status"]["userInfo"]["username"])


async def test_instances_and_clusters_by_name(world: World, plane: EmbeddedPlane) -> None:
    demo = await world.instance("demo", await world.secret("demo", await plane.instance_connection()))
    members = {}
    for name in ("frankfurt", "oregon"):
        connection = await plane.members.connection(name)
        members[await world.cluster(name, await world.secret(name, connection))] = connection
    async with running(world, settings=PATIENT) as watched:
        health = await watched.until(INSTANCE, demo, Reason.ANSWERS)
        assert health.reachable
        assert health.server_version.startswith("v1.35")
        assert health.latency is not None
        assert 0 < health.latency < PATIENT.probe_timeout
        joined = (await watched.pool.instance(demo).list(kinds.CLUSTERS)).items
        assert {"frankfurt", "oregon"} <= {item["metadata"]["name"] for item in joined}

        for name, connection in members.items():
            await watched.until(CLUSTER, name, Reason.ANSWERS)
            async with Client(connection) as direct:
                assert await identity_of(watched.pool.cluster(name)) == await identity_of(direct)
        with pytest.raises(NotConnected, match="there is no cluster of this name"):
            watched.pool.cluster(demo)
        assert watched.metric("kairship_pool_connected", demo) == 1
        assert (watched.metric("kairship_pool_probe_seconds_count", demo) or 0) >= 1
        assert watched.metric("kairship_pool_failures_total", demo) is None


async def test_every_reason_for_not_being_connected(world: World, plane: EmbeddedPlane) -> None:
    good = await plane.members.connection("oregon")
    token = "not-a-token-of-this-cluster"
    refused = good.to_kubeconfig(name="x").replace(b"user:\n", b"user:\n    exec: {command: /bin/true}\n", 1)
    cases: dict[str, tuple[Connection | bytes, Reason, str]] = {
        "exec": (refused, Reason.KUBECONFIG_REFUSED, "'exec'"),
        "plain": (Connection(server="http://127.0.0.1:1"), Reason.KUBECONFIG_REFUSED, "use an https address"),
        "blind": (
            Connection(server=good.server, insecure_skip_tls_verify=True, token=token),
            Reason.KUBECONFIG_REFUSED,
            "give its CA instead",
        ),
        "nonsense": (b"- 1", Reason.KUBECONFIG_REFUSED, "not a kubeconfig"),
        "stranger": (
            Connection(server=good.server, ca=Authority().certificate),
            Reason.CERTIFICATE_REJECTED,
            "is not trusted",
        ),
        "token": (Connection(server=good.server, ca=good.ca, token=token), Reason.CREDENTIAL_REJECTED, "renew it"),
        "closed": (
            msgspec.structs.replace(good, server="https://127.0.0.1:1"),
            Reason.CONNECT_FAILED,
            "check that it runs",
        ),
    }
    names = {case: await world.cluster(case, await world.secret(case, cases[case][0])) for case in cases}
    no_key = await world.secret("no-key", b"")
    keyless = await world.cluster("keyless", no_key)
    missing = await world.cluster("missing", f"{world.own}-late")
    young = await world.instance("young")
    async with running(world) as watched:
        pool = watched.pool
        for case, (_, reason, words) in cases.items():
            health = await watched.until(CLUSTER, names[case], reason)
            with pytest.raises(NotConnected, match=words) as raised:
                pool.cluster(names[case])
            assert raised.value.reason is reason
            assert token not in f"{raised.value} {health!r}"
            assert (health.error is None) == (reason is Reason.KUBECONFIG_REFUSED)
            assert watched.metric("kairship_pool_connected", names[case]) == 0
            assert watched.metric("kairship_pool_failures_total", names[case])
        await watched.until(CLUSTER, keyless, Reason.SECRET_MISSING)
        with pytest.raises(NotConnected, match="no key 'kubeconfig'"):
            pool.cluster(keyless)
        await watched.until(INSTANCE, young, Reason.NO_CREDENTIALS)
        with pytest.raises(NotConnected, match="no credentials yet"):
            pool.instance(young)
        with pytest.raises(NotConnected, match="there is no instance") as raised:
            pool.instance(f"{world.own}-nobody")
        assert raised.value.reason is Reason.UNKNOWN

        await watched.until(CLUSTER, missing, Reason.SECRET_MISSING)
        secret = await world.secret("late", good)
        await watched.until(CLUSTER, missing, Reason.ANSWERS)
        # When a credential is withdrawn its client is closed, even for callers that have kept it.
        held = pool.cluster(missing)
        await world.client.delete(kinds.SECRETS, secret, namespace=NAMESPACE)
        await watched.until(CLUSTER, missing, Reason.SECRET_MISSING)
        with pytest.raises(NotConnected, match="does not exist"):
            pool.cluster(missing)
        with pytest.raises(ClientClosed):
            await held.version()


async def test_targets_are_only_where_the_operator_allows_them(world: World, plane: EmbeddedPlane) -> None:
    """The rule holds for a target that has been used for a while and then gets another address, too."""
    good = await plane.instance_connection()
    allowing = msgspec.structs.replace(FAST, addresses=AddressRule.allowing(["127.0.0.1"]))
    demo = await world.instance("demo", await world.secret("demo", good))
    elsewhere = {"link": "https://169.254.169.254", "loopback": "https://127.0.0.9:6443", "six": "https://[::1]:6443"}
    names = []
    for case, server in elsewhere.items():
        secret = await world.secret(case, msgspec.structs.replace(good, server=server))
        names.append(await world.cluster(case, secret))
    async with running(world, settings=allowing) as watched:
        for name in names:
            await watched.until(CLUSTER, name, Reason.ADDRESS_REFUSED)
            with pytest.raises(NotConnected, match="the operator can allow it"):
                watched.pool.cluster(name)
        await watched.until(INSTANCE, demo, Reason.ANSWERS)
        await world.secret("demo", msgspec.structs.replace(good, server="https://127.0.0.9:6443"))
        await watched.until(INSTANCE, demo, Reason.ADDRESS_REFUSED)
        await world.secret("demo", good)
        await watched.until(INSTANCE, demo, Reason.ANSWERS)


async def test_a_rotated_credential_is_used_at_once_and_the_old_client_ends_its_work(
    world: World, plane: EmbeddedPlane
) -> None:
    admin = await plane.instance_connection()
    pki = Pki(plane.home.planes / await plane.instance_uid() / "pki")
    issued = pki.ensure_client(world.own, authority="ca", common_name=world.own, organizations=["system:masters"])
    rotated = msgspec.structs.replace(admin, client_cert=issued.cert.read_bytes(), client_key=issued.key.read_bytes())
    # The time in which the old client must see an event through the new one, also on a busy machine.
    graceful = msgspec.structs.replace(PATIENT, grace=10.0)
    # The relay breaks nothing here: it shows which connections are open.
    async with broken_way_to(admin) as (relay, connection):
        secret = await world.secret("demo", connection)
        demo = await world.instance("demo", secret)
        async with running(world, settings=graceful) as watched:
            await watched.until(INSTANCE, demo, Reason.ANSWERS)
            old = watched.pool.instance(demo)
            assert await user_of(old) != world.own
            began = await old.list(kinds.CONFIGMAPS, namespace="default")
            watch = old.watch(
                kinds.CONFIGMAPS,
                namespace="default",
                resource_version=began.resource_version,
                field_selector=f"metadata.name={world.own}",
            )
            async with aclosing(watch) as events:
                in_flight = asyncio.create_task(anext(events))
                await world.secret("demo", rotated)
                changed = time.monotonic()
                await eventually(lambda: watched.pool.instance(demo) is not old, "a client with the new Secret")
                assert time.monotonic() - changed < 10.0
                new = watched.pool.instance(demo)
                assert await user_of(new) == world.own

                await new.create(kinds.CONFIGMAPS, {"metadata": {"name": world.own}}, namespace="default")
                assert (await in_flight).object["metadata"]["name"] == world.own
                await new.delete(kinds.CONFIGMAPS, world.own, namespace="default")
                await relay.wait_for_connections(0, timeout=PATIENCE)
            # It was connected all the time: listeners were notified of the start and of the new client.
            assert watched.heard == [(demo, Reason.ANSWERS)] * 2
            assert watched.metric("kairship_pool_client_replacements_total", demo) == 1

            # A Secret with the same content as before is no reason to connect again.
            await world.client.patch(
                kinds.SECRETS, secret, {"metadata": {"labels": {"touched": "yes"}}}, namespace=NAMESPACE
            )
            await world.secret("demo", connection)
            await eventually(lambda: watched.pool.instance(demo) is not new, "a client with the first Secret")
            assert watched.metric("kairship_pool_client_replacements_total", demo) == 2


async def test_a_deleted_target_is_gone_and_its_name_can_be_used_again(world: World, plane: EmbeddedPlane) -> None:
    frankfurt = await world.secret("frankfurt", await plane.members.connection("frankfurt"))
    oregon = await world.secret("oregon", await plane.members.connection("oregon"))
    name = await world.cluster("member", frankfurt)
    async with running(world, settings=PATIENT) as watched:
        await watched.until(CLUSTER, name, Reason.ANSWERS)
        old = watched.pool.cluster(name)
        first = await identity_of(old)
        await world.client.delete(SERVED["Cluster"], name)
        await watched.until(CLUSTER, name, Reason.UNKNOWN)
        with pytest.raises(NotConnected, match="there is no cluster"):
            watched.pool.cluster(name)
        assert f'name="{name}"' not in watched.exposition()

        await world.cluster("member", oregon)
        await watched.until(CLUSTER, name, Reason.ANSWERS)
        assert await identity_of(watched.pool.cluster(name)) != first
        with pytest.raises(ClientClosed):
            await old.version()
        assert watched.metric("kairship_pool_connected", name) == 1


async def test_another_address_than_that_in_the_kubeconfig(world: World, plane: EmbeddedPlane) -> None:
    good = await plane.members.connection("oregon")
    elsewhere = msgspec.structs.replace(good, server="https://127.0.0.1:1")
    name = await world.cluster("moved", await world.secret("moved", elsewhere))
    async with running(world) as watched:
        await watched.until(CLUSTER, name, Reason.CONNECT_FAILED)
        await world.client.patch(SERVED["Cluster"], name, {"spec": {"endpoint": good.server}})
        await watched.until(CLUSTER, name, Reason.ANSWERS)
        assert watched.pool.cluster(name).connection.server == good.server


async def test_a_hanging_target_does_not_slow_another(world: World, plane: EmbeddedPlane) -> None:
    well = await world.cluster("well", await world.secret("well", await plane.members.connection("oregon")))
    async with broken_way_to(await plane.members.connection("frankfurt")) as (relay, connection):
        ill = await world.cluster("ill", await world.secret("ill", connection))
        async with running(world, settings=UNHURRIED) as watched:
            connected = await watched.until(CLUSTER, ill, Reason.ANSWERS)
            await watched.until(CLUSTER, well, Reason.ANSWERS)
            relay.hold()
            began = time.monotonic()
            stuck = [asyncio.create_task(watched.pool.cluster(ill).version(timeout=3)) for _ in range(20)]
            slowest = 0.0
            while watched.pool.health(CLUSTER, ill).reachable:
                asked = time.monotonic()
                await watched.pool.cluster(well).version()
                slowest = max(slowest, time.monotonic() - asked)
                assert watched.pool.health(CLUSTER, well).reachable
                await asyncio.sleep(0.05)  # the machine is left to others meanwhile
            noticed = time.monotonic() - began
            # Two probes of five seconds each, and the pauses before them.
            assert noticed < 60.0
            # Whoever waited for the other would have waited for as long as a probe of it hangs.
            assert slowest < UNHURRIED.probe_timeout
            health = watched.pool.health(CLUSTER, ill)
            assert health.reason is Reason.TIMED_OUT
            assert isinstance(health.error, TimedOut)
            assert health.since > connected.since
            with pytest.raises(
                NotConnected, match=r"no answer since .* UTC: .* did not answer GET /version within 5 s"
            ):
                watched.pool.cluster(ill)
            assert all(isinstance(each, TimedOut) for each in await asyncio.gather(*stuck, return_exceptions=True))

            await relay.heal()
            await watched.until(CLUSTER, ill, Reason.ANSWERS)
            await watched.pool.cluster(ill).version()
        assert (well, Reason.TIMED_OUT) not in watched.heard


async def test_those_that_do_not_answer_are_tried_in_turns_and_hold_up_nobody(
    world: World, plane: EmbeddedPlane
) -> None:
    one_by_one = msgspec.structs.replace(UNHURRIED, max_connecting=1)
    async with broken_way_to(await plane.members.connection("frankfurt")) as (relay, connection):
        relay.hold()
        dead = [await world.cluster(f"dead-{n}", await world.secret(f"dead-{n}", connection)) for n in range(3)]
        well = await world.cluster("well", await world.secret("well", await plane.members.connection("oregon")))
        async with running(world, settings=one_by_one) as watched:
            await watched.until(CLUSTER, well, Reason.ANSWERS)
            for name in dead:
                await watched.until(CLUSTER, name, Reason.TIMED_OUT)
            await relay.heal()
            for name in dead:
                await watched.until(CLUSTER, name, Reason.ANSWERS)
        assert (well, Reason.TIMED_OUT) not in watched.heard


async def test_new_credentials_are_not_delayed_by_a_probe_that_hangs(world: World, plane: EmbeddedPlane) -> None:
    direct = await plane.members.connection("oregon")
    hanging = msgspec.structs.replace(FAST, probe_timeout=60.0)
    async with broken_way_to(direct) as (relay, connection):
        relay.hold()
        name = await world.cluster("stuck", await world.secret("stuck", connection))
        async with running(world, settings=hanging) as watched:
            await relay.wait_for_connections(1)
            began = time.monotonic()
            await world.secret("stuck", direct)
            await watched.until(CLUSTER, name, Reason.ANSWERS)
            assert time.monotonic() - began < 30.0


async def test_one_failed_probe_is_no_outage(world: World, plane: EmbeddedPlane) -> None:
    forgiving = msgspec.structs.replace(PATIENT, failure_threshold=1000)
    async with broken_way_to(await plane.members.connection("oregon")) as (relay, connection):
        name = await world.cluster("flaky", await world.secret("flaky", connection))
        async with running(world, settings=forgiving) as watched:
            await watched.until(CLUSTER, name, Reason.ANSWERS)
            relay.refuse()
            relay.reset()
            await eventually(lambda: watched.pool.health(CLUSTER, name).error is not None, "the error of a probe")
            assert watched.pool.health(CLUSTER, name).reachable
            watched.pool.cluster(name)
            await relay.heal()
            await eventually(lambda: watched.pool.health(CLUSTER, name).error is None, "a probe without an error")
            assert watched.heard == [(name, Reason.ANSWERS)]
            assert watched.metric("kairship_pool_failures_total", name)


async def test_busy_callers_are_bounded_and_do_not_make_a_target_look_dead(world: World, plane: EmbeddedPlane) -> None:
    narrow = msgspec.structs.replace(PATIENT, max_connections=2)
    name = await world.cluster("busy", await world.secret("busy", await plane.members.connection("oregon")))
    async with running(world, settings=narrow) as watched:
        await watched.until(CLUSTER, name, Reason.ANSWERS)
        client = watched.pool.cluster(name)
        slow = "/api/v1/namespaces?watch=true&timeoutSeconds=3"
        async with asyncio.TaskGroup() as callers:
            for _ in range(2):
                callers.create_task(client.request("GET", slow))
            await asyncio.sleep(0)  # they begin, and have taken all there is
            with pytest.raises(TimedOut):
                await client.version(timeout=1.5)
        assert watched.heard == [(name, Reason.ANSWERS)]
        assert watched.metric("kairship_pool_failures_total", name) is None
        await client.version()


async def test_clients_outlive_the_global_cluster(world: World, plane: EmbeddedPlane, kube: Kube) -> None:
    good = await plane.members.connection("oregon")
    name = await world.cluster("member", await world.secret("member", good))
    async with (
        broken_way_to(kube.connection) as (relay, connection),
        Client(connection, timeout=2) as home,
        running(world, settings=PATIENT, home=home) as watched,
    ):
        await watched.until(CLUSTER, name, Reason.ANSWERS)
        old = watched.pool.cluster(name)
        relay.refuse()
        relay.reset()
        await watched.pool.cluster(name).version()
        # Changes in the meantime are caught up with.
        other = await plane.members.connection("frankfurt")
        await world.secret("member", other)
        await relay.heal()
        await eventually(lambda: watched.pool.cluster(name) is not old, "a client with the new Secret")
        assert watched.pool.cluster(name).connection.server == other.server
        # Once when it answered, once when it had a new client.
        assert watched.heard == [(name, Reason.ANSWERS)] * 2


async def test_a_defect_on_the_way_to_one_target_costs_the_others_nothing(
    world: World, plane: EmbeddedPlane, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = "a-token-that-must-not-be-logged"

    def defective(kubeconfig: bytes, *, endpoint: str | None) -> Connection:
        if endpoint is not None:
            raise ZeroDivisionError(kubeconfig.decode())
        return connection_from(kubeconfig, endpoint=endpoint)

    monkeypatch.setattr("kairship.instances.pool.target.connection_from", defective)
    good = await plane.members.connection("oregon")
    ill_secret = await world.secret("ill", Connection(server=good.server, ca=good.ca, token=token))
    ill = await world.cluster("ill", ill_secret, endpoint="https://10.0.0.1")
    well = await world.cluster("well", await world.secret("well", good))
    async with running(world, settings=PATIENT) as watched:
        await watched.until(CLUSTER, well, Reason.ANSWERS)
        logged = ""

        def reported() -> bool:
            nonlocal logged
            logged += capsys.readouterr().out
            return "ZeroDivisionError" in logged

        await eventually(reported, "the defect in the log")
        assert f"name={ill}" in logged
        assert "in defective" in logged
        assert token not in logged
        await watched.pool.cluster(well).version()
        with pytest.raises(NotConnected, match="has not answered yet"):
            watched.pool.cluster(ill)
    with pytest.raises(NotConnected, match="does not follow it any more"):
        watched.pool.cluster(well)
