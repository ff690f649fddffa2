"""The `local` driver against the real engine: creating, reconfiguring and deleting an instance.

The tests share one instance. Each begins by converging it to settings without any option.
"""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from support.instances import BASIC, OwnInstance, own_instance
from support.not_yet import NotYet
from support.waiting import eventually

from kairship.controlplane import karmada
from kairship.controlplane.karmada import Descheduling, Failover
from kairship.controlplane.pki import Pki
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.drivers import DriverError, LocalDriver, StepFailed, run_steps
from kairship.kube import ApiError, Client, Connection, NotFound, kinds


@pytest.fixture(scope="module")
def shared(plane: EmbeddedPlane, engine: Engine) -> Iterator[OwnInstance]:
    with own_instance(plane, engine) as instance:
        yield instance


@pytest.fixture
async def instance(shared: OwnInstance) -> OwnInstance:
    await shared.converge()
    return shared


async def available(instance: OwnInstance, *services: str) -> None:
    """Every one of these API services must be served, by a server outside the API server."""
    async with await instance.client() as client:

        async def served() -> NotYet | bool:
            # The API server asks again and again, and a busy machine may have kept it waiting the last time.
            for name in services:
                service = await client.get(kinds.API_SERVICES, name)
                conditions = {item["type"]: item["status"] for item in service["status"]["conditions"]}
                assert service["spec"]["service"]["namespace"] == karmada.NAMESPACE
                if conditions["Available"] != "True":
                    return NotYet(f"{name}: {conditions}")
            return True

        await eventually(served, "the API services being available")


async def names(instance: OwnInstance) -> tuple[set[str], set[str]]:
    """The Services of Karmada's components and the API services that lead to them."""
    async with await instance.client() as client:
        services = await client.list(kinds.SERVICES, namespace=karmada.NAMESPACE)
        aggregated = await client.list(kinds.API_SERVICES)
    return (
        {item["metadata"]["name"] for item in services.items},
        {item["metadata"]["name"] for item in aggregated.items if item["spec"].get("service")},
    )


async def test_a_new_instance_is_a_whole_karmada(instance: OwnInstance) -> None:
    assert set(await instance.pids()) == BASIC
    health = await instance.driver.health(instance.uid)
    assert {item.component: item.reason for item in health if not item.healthy} == {}

    async with await instance.client() as client:
        definitions = {item["metadata"]["name"] for item in (await client.list(kinds.CRDS)).items}
        assert {"works.work.karmada.io", "propagationpolicies.policy.karmada.io"} <= definitions
        assert len(definitions) == len(list(instance.engine.karmada_crds(instance.version).glob("bases/*/*.yaml")))
        assert (await client.list(kinds.CLUSTERS)).items == []
        with pytest.raises(ApiError, match="resourceSelectors"):
            await client.create(
                kinds.PROPAGATION_POLICIES,
                {"metadata": {"name": "empty"}, "spec": {"resourceSelectors": [], "placement": {}}},
                namespace="default",
            )


async def test_its_kubeconfig_opens_it(instance: OwnInstance) -> None:
    path = instance.directory / "kubeconfig" / "admin.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    async with Client(Connection.from_kubeconfig(path)) as client:
        assert (await client.get(kinds.NAMESPACES, karmada.NAMESPACE))["status"]["phase"] == "Active"


async def test_converging_again_restarts_nothing_and_writes_nothing(instance: OwnInstance) -> None:
    async def versions() -> dict[str, str]:
        async with await instance.client() as client:
            pages = [
                await client.list(kind) for kind in (kinds.CRDS, kinds.MUTATING_WEBHOOKS, kinds.VALIDATING_WEBHOOKS)
            ]
        return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for page in pages for item in page.items}

    before = await versions()
    assert await instance.restarted_by() == set()
    assert await versions() == before


async def test_failover_restarts_the_controller_manager_alone(instance: OwnInstance) -> None:
    assert await instance.restarted_by(failover=Failover()) == {karmada.CONTROLLER_MANAGER}
    assert await instance.restarted_by(failover=Failover(graceful_eviction_timeout=60)) == {karmada.CONTROLLER_MANAGER}
    assert await instance.restarted_by() == {karmada.CONTROLLER_MANAGER}


async def test_descheduling_comes_with_estimators_and_goes_without_a_trace(
    instance: OwnInstance, plane: EmbeddedPlane
) -> None:
    member = plane.members.specs()[0].name
    estimator = karmada.estimator_of(member)
    kubeconfig = (await plane.members.connection(member)).to_kubeconfig(name=member)
    without = await names(instance)

    touched = await instance.restarted_by(descheduling=Descheduling(), estimators={member: kubeconfig})
    assert touched == {karmada.DESCHEDULER, karmada.SCHEDULER, estimator}
    async with await instance.client() as client:
        service = await client.get(kinds.SERVICES, estimator, namespace=karmada.NAMESPACE)
    ports = await instance.supervisor.allocate_ports(instance.uid, [estimator])
    assert service["spec"]["ports"][0]["targetPort"] == ports[estimator]
    stored = instance.directory / "kubeconfig" / f"{estimator}.yaml"
    assert stored.read_bytes() == kubeconfig

    assert await instance.restarted_by() == touched
    assert await names(instance) == without
    assert not stored.exists()  # a credential of the member


async def test_addons_serve_their_apis_and_leave_nothing_that_hangs(instance: OwnInstance) -> None:
    without = await names(instance)
    touched = await instance.restarted_by(metrics_adapter=True, search=True)
    assert touched == {karmada.METRICS_ADAPTER, karmada.SEARCH}
    await available(
        instance,
        "v1alpha1.search.karmada.io",
        "v1beta1.metrics.k8s.io",
        "v1beta1.custom.metrics.k8s.io",
        "v1beta2.custom.metrics.k8s.io",
    )

    assert await instance.restarted_by() == touched
    assert await names(instance) == without
    async with await instance.client() as client:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "short-lived"}})
        await client.delete(kinds.NAMESPACES, "short-lived")

        async def gone() -> bool:
            try:
                await client.get(kinds.NAMESPACES, "short-lived")
            except NotFound:
                return True
            return False

        # The namespace controller lists the namespace in every API service: a dead one would block the deletion.
        await eventually(gone, "the namespace being deleted")


class BrokenSearch(Engine):
    """An engine whose karmada-search exits at once."""

    def binary(self, name: str, version: str | None = None) -> Path:
        return Path("/bin/false") if name == karmada.SEARCH else super().binary(name, version)


async def test_an_ill_component_is_named_and_does_not_stop_its_own_removal(instance: OwnInstance) -> None:
    """Switching search off because it crashes must work although it crashes."""
    engine = instance.engine
    broken = BrokenSearch(catalogue=engine.catalogue, cache=engine.cache, folder=engine.folder)
    driver = LocalDriver(instance.home.root, engine=broken, supervisor=instance.supervisor)
    steps = await driver.converge(instance.desired(search=True))
    with pytest.raises(StepFailed, match="karmada-search"):
        await run_steps(steps)
    assert karmada.SEARCH in await instance.pids()
    await instance.converge()
    assert set(await instance.pids()) == BASIC


async def test_a_certificate_close_to_its_end_is_renewed_and_its_process_restarted(instance: OwnInstance) -> None:
    pki_directory = instance.directory / "pki"
    user = karmada.SCHEDULER
    authority = (pki_directory / "ca.crt").read_bytes()
    (pki_directory / f"{user}.crt").unlink()
    long_ago = Pki(pki_directory, now=dt.datetime.now(dt.UTC) - dt.timedelta(days=365 - 29))
    long_ago.ensure_client(user, authority="ca", common_name=f"system:{user}", organizations=("system:masters",))

    assert await instance.restarted_by() == {user}
    renewed = x509.load_pem_x509_certificate((pki_directory / f"{user}.crt").read_bytes())
    assert renewed.not_valid_after_utc > dt.datetime.now(dt.UTC) + dt.timedelta(days=360)
    assert (pki_directory / "ca.crt").read_bytes() == authority


async def test_everything_on_disk_is_private(instance: OwnInstance) -> None:
    written = [path for name in ("pki", "kubeconfig", "config") for path in (instance.directory / name).rglob("*")]
    assert len(written) > 30
    readable_by_others = [path for path in written if path.is_file() and path.stat().st_mode & 0o077]
    assert readable_by_others == []
    assert instance.directory.stat().st_mode & 0o077 == 0


async def test_another_version_is_an_upgrade_and_an_unknown_one_is_refused(instance: OwnInstance) -> None:
    other = next(version for version in instance.driver.versions() if version != instance.version)
    with pytest.raises(DriverError, match="upgrade it to change the version"):
        await instance.driver.converge(instance.desired(version=other))
    with pytest.raises(DriverError, match="is older"):
        await instance.driver.upgrade(instance.desired(version=other))
    with pytest.raises(DriverError, match=r"v0\.0\.1 is not on offer"):
        await instance.driver.converge(instance.desired(version="v0.0.1"))
    assert await instance.driver.upgrade(instance.desired()) == []
    assert await instance.driver.roll_back(instance.desired()) == []


async def test_a_name_belongs_to_one_instance(instance: OwnInstance, plane: EmbeddedPlane) -> None:
    namesake = OwnInstance(plane, instance.engine)
    namesake.name = instance.name
    with pytest.raises(DriverError, match=instance.uid):
        await namesake.driver.converge(namesake.desired())


@pytest.mark.parametrize("made", [1, 3], ids=["only prepared", "half made"])
async def test_delete_leaves_nothing(made: int, plane: EmbeddedPlane, engine: Engine) -> None:
    """Nothing is left of an instance that was half created; `own_instance` checks whole instances in every module."""
    instance = OwnInstance(plane, engine)
    await run_steps((await instance.driver.converge(instance.desired()))[:made])
    assert any(trace.startswith("process") for trace in instance.traces()) == (made > 1)
    assert instance.traces()

    await instance.delete()
    assert instance.traces() == []
    assert await instance.supervisor.status(instance.group) == []
    with pytest.raises(DriverError, match="no local instance"):
        await instance.driver.connection(instance.uid)
    await instance.delete()  # again, because the first call's answer may have been lost


async def test_what_does_not_exist_is_said_to(plane: EmbeddedPlane, engine: Engine) -> None:
    instance = OwnInstance(plane, engine)
    for call in (
        instance.driver.connection(instance.uid),
        instance.driver.health(instance.uid),
        instance.driver.upgrade(instance.desired()),
        instance.driver.roll_back(instance.desired()),
        instance.driver.backup(instance.uid, plane.home.root / "nowhere"),
        instance.driver.restore(instance.desired(), plane.home.root / "nowhere"),
    ):
        with pytest.raises(DriverError, match=instance.uid):
            await call
    await instance.delete()
    await run_steps((await instance.driver.converge(instance.desired()))[:1])
    with pytest.raises(DriverError, match="has no certificates yet"):
        await instance.driver.connection(instance.uid)
    await instance.delete()
