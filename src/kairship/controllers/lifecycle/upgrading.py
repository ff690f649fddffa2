"""Changing the version of an instance, and the way back when that fails.

    status.upgrade is written  →  the driver's steps  →  done: the new version is written, status.upgrade removed
                                        ↓ one fails
                               Upgraded: RollingBack is written  →  the driver's steps back  →  Upgraded: RolledBack
                                        ↓ one fails
                               Upgraded: UpgradeFailed is written, and the way back is tried again and again

Whoever resumes sees from these two fields which way it went. A target that led to a rollback is not tried again for the
same spec: somebody has to look first.
"""

from collections.abc import Mapping

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.desired import settings_of
from kairship.controllers.lifecycle.work import Work
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation, is_older
from kairship.resources.instance_status import Upgrade

_UPGRADED = InstanceCondition.UPGRADED
_ON_THE_WAY_BACK = (InstanceReason.ROLLING_BACK, InstanceReason.UPGRADE_FAILED)


async def upgrade(work: Work, estimators: Mapping[str, bytes]) -> bool:
    """Bring the instance to the version of its spec, if that can be. Whether the version has changed."""
    journal = work.journal
    running, wanted = journal.status.karmada_version, work.spec.version
    if wanted is None or wanted == running:
        journal.state(_UPGRADED, "True", InstanceReason.UP_TO_DATE, f"Karmada {running}".rstrip())
        return False
    if refusal := _refusal(work, running, wanted):
        reason, message = refusal
        journal.state(_UPGRADED, "False", reason, message)
        return False
    if _was_rolled_back(work):
        return False
    journal.set(upgrade=Upgrade(from_version=running, to_version=wanted, started_at=journal.now()))
    journal.state(_UPGRADED, "False", InstanceReason.UPGRADING, f"from {running} to {wanted}")
    await journal.write()
    journal.announce(InstanceReason.UPGRADING, f"from {running} to {wanted}")
    await resume(work, estimators)
    return True


async def resume(work: Work, estimators: Mapping[str, bytes]) -> None:
    """Go on with the upgrade that the status tells of, forward or back, to its end."""
    if not any(work.journal.gives(_UPGRADED, reason) for reason in _ON_THE_WAY_BACK):
        begun = _begun(work)
        settings = settings_of(work.spec, version=begun.to_version, estimators=estimators)
        try:
            await work.run(Operation.UPGRADE, await work.driver.upgrade(work.desired(settings)))
        except (StepFailed, DriverError) as error:
            await _turn_back(work, error)
        else:
            await _arrive(work)
            return
    await _back(work, estimators)


async def _arrive(work: Work) -> None:
    journal = work.journal
    begun = _begun(work)
    await credentials.publish(work)
    journal.set(operation=None, upgrade=None, karmada_version=begun.to_version)
    journal.state(_UPGRADED, "True", InstanceReason.UP_TO_DATE, f"Karmada {begun.to_version}")
    await journal.write()
    journal.announce(InstanceReason.UP_TO_DATE, f"upgraded from {begun.from_version} to {begun.to_version}")


async def _turn_back(work: Work, error: Exception) -> None:
    begun = _begun(work)
    message = f"the upgrade from {begun.from_version} to {begun.to_version} failed: {error}"
    work.journal.state(_UPGRADED, "False", InstanceReason.ROLLING_BACK, message)
    await work.journal.write()
    work.journal.announce(InstanceReason.ROLLING_BACK, message, warning=True)


async def _back(work: Work, estimators: Mapping[str, bytes]) -> None:
    journal = work.journal
    begun = _begun(work)
    settings = settings_of(work.spec, version=begun.from_version, estimators=estimators)
    try:
        await work.run(Operation.ROLL_BACK, await work.driver.roll_back(work.desired(settings)))
    except (StepFailed, DriverError) as error:
        message = f"the way back to {begun.from_version} failed and is tried again: {error}"
        journal.state(_UPGRADED, "False", InstanceReason.UPGRADE_FAILED, message)
        await journal.write()
        journal.announce(InstanceReason.UPGRADE_FAILED, message, warning=True)
        raise RetryableError(message) from error
    await credentials.publish(work)
    journal.set(operation=None, upgrade=None)
    journal.state(
        _UPGRADED,
        "False",
        InstanceReason.ROLLED_BACK,
        f"the upgrade to {begun.to_version} failed and was undone; the events tell why. It is tried again when the "
        "spec changes",
    )
    await journal.write()
    journal.announce(InstanceReason.ROLLED_BACK, f"Karmada {begun.from_version} runs again", warning=True)


def _refusal(work: Work, running: str, wanted: str) -> tuple[InstanceReason, str] | None:
    if not work.driver.capabilities.can_upgrade:
        return InstanceReason.NOT_SUPPORTED, f"the driver {work.spec.driver} does not change versions"
    if is_older(wanted, than=running):
        return InstanceReason.DOWNGRADE_REFUSED, f"{running} runs and {wanted} is older: it may not understand the data"
    offered = work.driver.versions()
    if wanted not in offered:
        return InstanceReason.VERSION_NOT_OFFERED, f"{wanted} is not on offer; available: {', '.join(offered)}"
    return None


def _was_rolled_back(work: Work) -> bool:
    found = work.journal.condition(_UPGRADED)
    return (
        found is not None
        and found.reason == InstanceReason.ROLLED_BACK
        and found.observed_generation == work.journal.generation
    )


def _begun(work: Work) -> Upgrade:
    begun = work.journal.status.upgrade
    if begun is None:
        raise AssertionError("no upgrade has begun")
    return begun
