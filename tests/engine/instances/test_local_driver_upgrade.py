"""Upgrades of the `local` driver from the previous Karmada to the current one, on the real engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.instances import OwnInstance, own_instance

from kairship.controlplane import karmada
from kairship.embedded import EmbeddedPlane
from kairship.engine import Engine
from kairship.instances.drivers import DriverError, LocalDriver, StepFailed, run_steps
from kairship.kube import kinds

KARMADA = {
    karmada.AGGREGATED_APISERVER,
    karmada.WEBHOOK,
    karmada.CONTROLLER_MANAGER,
    karmada.SCHEDULER,
}
IN_ORDER = [
    "snapshot",
    "certificates",
    "definitions",
    "upgrade-karmada-aggregated-apiserver",
    "aggregated-api",
    "upgrade-karmada-webhook",
    "admission",
    "upgrade-karmada-controller-manager",
    "upgrade-karmada-scheduler",
    "upgrade-karmada-search",
    "controllers",
    "retire",
    "finish",
]


@pytest.fixture(scope="module")
def versions(engine: Engine) -> tuple[str, str]:
    """The version before the upgrade and the version after it."""
    current, previous, *_ = engine.karmada_versions()
    return previous, current


@pytest.fixture(scope="module")
def shared(plane: EmbeddedPlane, engine: Engine, versions: tuple[str, str]) -> Iterator[OwnInstance]:
    with own_instance(plane, engine, version=versions[0]) as instance:
        yield instance


@pytest.fixture
async def instance(shared: OwnInstance) -> OwnInstance:
    async with await shared.client() as client:
        for mark in await shared.marks():
            await client.delete(kinds.CONFIGMAPS, mark, namespace="default")
    return shared


async def running(instance: OwnInstance) -> dict[str, str]:
    """The version of each running Karmada component, by the binary of its process."""
    pids = await instance.pids()
    versions = {
        str(instance.engine.binary(component, version).resolve()): version
        for version in instance.driver.versions()
        for component in KARMADA
    }
    return {component: versions[str(Path(f"/proc/{pids[component]}/exe").resolve())] for component in KARMADA}


class BrokenScheduler(Engine):
    """Makes the scheduler of the current version exit at once."""

    def binary(self, name: str, version: str | None = None) -> Path:
        broken = name == karmada.SCHEDULER and version == self.karmada_versions()[0]
        return Path("/bin/false") if broken else super().binary(name, version)


async def test_a_failed_upgrade_is_rolled_back_to_the_data_before_it(
    instance: OwnInstance, versions: tuple[str, str]
) -> None:
    previous, current = versions
    await instance.write("before")
    wanted = instance.desired(version=current)
    engine = instance.engine
    broken = BrokenScheduler(catalogue=engine.catalogue, cache=engine.cache, folder=engine.folder)
    driver = LocalDriver(instance.home.root, engine=broken, supervisor=instance.supervisor)

    with pytest.raises(StepFailed) as failure:
        await run_steps(await driver.upgrade(wanted))
    assert failure.value.step.name == "upgrade-karmada-scheduler"
    await instance.write("during")
    for refused in (instance.driver.converge(instance.desired()), instance.driver.backup(instance.uid, Path("unused"))):
        with pytest.raises(DriverError, match=f"upgrade of {instance.name} to {current} has not ended"):
            await refused

    back = await driver.roll_back(wanted)
    await run_steps(back[:3])  # stopped; its data is still that of the upgrade
    with pytest.raises(DriverError, match="is being rolled back"):
        await driver.upgrade(wanted)
    await run_steps(await instance.driver.roll_back(wanted))

    assert set((await running(instance)).values()) == {previous}
    assert await instance.marks() == {"before"}
    assert await instance.driver.roll_back(wanted) == []
    assert await instance.restarted_by() == set()
    assert [path.name for path in instance.directory.glob("*.db")] == []


async def test_an_upgrade_goes_in_order_can_be_resumed_and_keeps_the_data(
    instance: OwnInstance, versions: tuple[str, str]
) -> None:
    previous, current = versions
    await instance.write("before")
    wanted = instance.desired(version=current, search=True)  # a setting may change along with the version
    untouched = {name: pid for name, pid in (await instance.pids()).items() if name not in KARMADA}
    steps = await instance.driver.upgrade(wanted)
    assert [step.name for step in steps] == IN_ORDER

    await run_steps(steps[:6])
    assert await running(instance) == {
        karmada.AGGREGATED_APISERVER: current,
        karmada.WEBHOOK: current,
        karmada.CONTROLLER_MANAGER: previous,
        karmada.SCHEDULER: previous,
    }
    [snapshot] = instance.directory.glob("*.db")
    taken = snapshot.stat().st_mtime_ns
    await instance.write("during")

    await run_steps((await instance.driver.upgrade(wanted))[:-1])
    assert snapshot.stat().st_mtime_ns == taken, "a resumed upgrade must keep the snapshot from before it"
    await run_steps(await instance.driver.upgrade(wanted))
    assert set((await running(instance)).values()) == {current}
    assert await instance.marks() == {"before", "during"}
    assert not snapshot.exists()
    after = await instance.pids()
    assert {name: after[name] for name in untouched} == untouched

    assert after.keys() - untouched.keys() == KARMADA | {karmada.SEARCH}

    instance.version = current
    assert await instance.restarted_by(search=True) == set()
    assert await instance.driver.roll_back(wanted) == []
