"""An instance from its creation to its deletion, as its object asks for it, on the real engine.

All tests of the module use one instance, and each test continues where the one before has ended.
"""

from pathlib import Path

import pytest
from support.instances import BASIC
from support.managed import ManagedInstance, World, all_of, gives, leading, settled, steps_of
from support.waiting import PATIENCE, eventually

from kairship import resources
from kairship.controllers.global_cluster import INSTANCE, MEMBERSHIP
from kairship.controllers.lifecycle import FINALIZER
from kairship.controlplane import karmada
from kairship.engine import Engine
from kairship.kube import Forbidden, kinds
from kairship.resources import Instance, InstanceCondition, InstanceReason, find_condition, is_true

PREVIOUS, CURRENT = "v1.18.1", "v1.18.2"
UPGRADED, RESTORED, DELETING = InstanceCondition.UPGRADED, InstanceCondition.RESTORED, InstanceCondition.DELETING


class BrokenScheduler(Engine):
    """An engine whose scheduler of the current version exits at once."""

    def binary(self, name: str, version: str | None = None) -> Path:
        broken = name == karmada.SCHEDULER and version == CURRENT
        return Path("/bin/false") if broken else super().binary(name, version)


def message_of(instance: Instance, kind: InstanceCondition) -> str:
    found = find_condition(instance.status.conditions, kind)
    return found.message if found else ""


async def test_created_step_by_step(instance: ManagedInstance, world: World) -> None:
    await instance.create(version=PREVIOUS)
    async with steps_of(instance) as steps, leading(world):
        # The steps come by a watch, the version is written after the settings, and the state by another controller.
        found = await instance.until(
            all_of(
                settled,
                gives(UPGRADED, InstanceReason.UP_TO_DATE),
                lambda found: "retire" in steps and found.status.state == "RUNNING",
            )
        )
    assert steps == [
        "prepare",
        "certificates",
        "control-plane",
        "definitions",
        "aggregated-api",
        "admission",
        "controllers",
        "retire",
    ]
    assert FINALIZER in found.metadata.finalizers
    assert found.status.karmada_version == PREVIOUS
    assert found.status.kubernetes_version.startswith("v1.")
    for kind in (InstanceCondition.CREATED, InstanceCondition.CONFIGURED, UPGRADED, InstanceCondition.READY):
        assert is_true(found.status.conditions, kind), kind
    assert set(await instance.pids()) == BASIC

    [secret] = await instance.secrets()
    assert found.status.credentials is not None
    assert secret["metadata"]["name"] == found.status.credentials.name
    assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == [instance.uid]
    async with await instance.inside() as inside:
        assert inside.connection.server == found.status.endpoint
        assert (await inside.list(kinds.CLUSTERS)).items == []


async def test_settings_restart_only_what_is_concerned(instance: ManagedInstance, world: World) -> None:
    before = await instance.pids()
    async with leading(world):
        await instance.change(failover={"enabled": True}, descheduler={"enabled": True})
        await instance.until(settled)
    after = await instance.pids()
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {karmada.CONTROLLER_MANAGER, karmada.SCHEDULER, karmada.DESCHEDULER}


async def test_a_version_that_cannot_be_had_changes_nothing(instance: ManagedInstance, world: World) -> None:
    before = await instance.pids()
    async with leading(world):
        for version, reason in (
            ("v1.99.0", InstanceReason.VERSION_NOT_OFFERED),
            ("v1.17.0", InstanceReason.DOWNGRADE_REFUSED),
        ):
            await instance.change(version=version)
            found = await instance.until(all_of(settled, gives(UPGRADED, reason)))
            assert found.status.karmada_version == PREVIOUS
        await instance.change(version=PREVIOUS)
        await instance.until(gives(UPGRADED, InstanceReason.UP_TO_DATE))
    assert await instance.pids() == before


async def test_backups_are_taken_kept_and_removed_as_declared(instance: ManagedInstance, world: World) -> None:
    await instance.write("before")
    async with leading(world):
        await instance.change(backups=[{"name": "first"}, {"name": "second"}])
        found = await instance.until(gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
        assert [(backup.name, backup.phase, backup.version) for backup in found.status.backups] == [
            ("first", "Completed", PREVIOUS),
            ("second", "Completed", PREVIOUS),
        ]
        assert all(backup.size_bytes and backup.sha256 and backup.taken_at for backup in found.status.backups)
        await instance.change(backups=[{"name": "first"}])
        await instance.until(lambda found: [backup.name for backup in found.status.backups] == ["first"])
    assert [path.name for path in (world.backups / instance.uid).iterdir()] == ["first"]


async def test_a_failed_upgrade_is_rolled_back_and_not_tried_again(
    instance: ManagedInstance, world: World, engine: Engine
) -> None:
    broken = BrokenScheduler(catalogue=engine.catalogue, cache=engine.cache, folder=engine.folder)
    async with steps_of(instance) as steps:
        async with leading(world, engine=broken):
            await instance.change(version=CURRENT)
            # Most of an upgrade, and a restore.
            found = await instance.until(gives(UPGRADED, InstanceReason.ROLLED_BACK), timeout=2 * PATIENCE)
        assert "upgrade-karmada-scheduler" in steps
        assert steps[steps.index("upgrade-karmada-scheduler") + 1] == "verify"
        assert (found.status.karmada_version, found.status.upgrade) == (PREVIOUS, None)
        assert await instance.marks() == {"before"}

        steps.clear()
        async with leading(world):
            # A new leader reconciles the instance and does not touch the version.
            await instance.until(lambda found: "retire" in steps and settled(found))
        assert "snapshot" not in steps
    assert (await instance.get()).status.karmada_version == PREVIOUS


async def test_upgraded_when_the_spec_asks_again(instance: ManagedInstance, world: World) -> None:
    async with leading(world):
        await instance.change(description="the scheduler has been mended")
        found = await instance.until(gives(UPGRADED, InstanceReason.UP_TO_DATE))
    assert (found.status.karmada_version, found.status.upgrade) == (CURRENT, None)
    assert await instance.marks() == {"before"}


async def test_a_restore_is_carried_out_once(instance: ManagedInstance, world: World) -> None:
    async with leading(world):
        await instance.change(restore={"request": "too-old", "backup": "first"})
        found = await instance.until(gives(RESTORED, InstanceReason.BACKUP_UNUSABLE))
        assert PREVIOUS in message_of(found, RESTORED), "data goes back only into the version that it came from"

        await instance.change(backups=[{"name": "first"}, {"name": "current"}])
        await instance.until(gives(InstanceCondition.BACKED_UP, InstanceReason.BACKED_UP))
        await instance.write("after")
        await instance.change(restore={"request": "once", "backup": "current"})
        found = await instance.until(gives(RESTORED, InstanceReason.RESTORED))
        assert found.status.restore is not None
        assert found.status.restore.request == "once"
        assert await instance.marks() == {"before"}
        await instance.write("later")
    async with steps_of(instance) as steps, leading(world):
        await instance.until(lambda found: "retire" in steps and settled(found))
    assert await instance.marks() == {"before", "later"}

    async with leading(world):
        [snapshot] = (world.backups / instance.uid / "current").glob("*.db")
        snapshot.write_bytes(snapshot.read_bytes()[:-1])
        await instance.change(restore={"request": "damaged", "backup": "current"})
        found = await instance.until(gives(RESTORED, InstanceReason.BACKUP_UNUSABLE))
        assert "damaged" in message_of(found, RESTORED)
    assert await instance.marks() == {"before", "later"}


async def test_deletion_waits_for_clusters_and_then_leaves_nothing(instance: ManagedInstance, world: World) -> None:
    client = instance.client
    membership = {"metadata": {"name": f"{instance.name}-m"}, "spec": {"instance": instance.name}}
    await client.create(MEMBERSHIP, membership)

    async def refused() -> bool:
        path = INSTANCE.path(name=instance.name)
        return (await client.request("DELETE", path, params={"dryRun": "All"})).status == 403

    await eventually(refused, "the policy hearing of the membership")
    with pytest.raises(Forbidden, match="has joined clusters"):
        await client.delete(INSTANCE, instance.name)

    # A cluster that joins at the moment of the deletion is not caught by the policy: here the policy is removed.
    policies = [item["metadata"]["name"] for item in resources.admission_policies() if "policyName" in item["spec"]]
    for name in policies:
        await client.delete(kinds.VALIDATING_ADMISSION_POLICY_BINDINGS, name)
    await instance.until_deletion_is_accepted()
    async with leading(world):
        found = await instance.until(gives(DELETING, InstanceReason.CLUSTERS_JOINED))
        assert f"{instance.name}-m" in message_of(found, DELETING)
        assert found.status.state == "TERMINAL" or await instance.until(lambda now: now.status.state == "TERMINAL")
        assert set(await instance.pids()) >= BASIC
        await client.delete(MEMBERSHIP, f"{instance.name}-m")
        await instance.until_gone()
    assert await instance.remains() == []
