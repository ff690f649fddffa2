"""Upgrades an instance to another version, and rolls back when that fails.

    status.upgrade is written  →  the driver's steps  →  done: the new version is written, status.upgrade removed
                                        ↓ one fails
                               Upgraded: RollingBack is written  →  the driver's rollback  →  Upgraded: RolledBack
                                        ↓ one fails
                               Upgraded: UpgradeFailed is written, and the rollback is tried again and again

A reconcile that resumes sees from `status.upgrade` and the condition in which direction it has to go. After a rollback
the upgrade is not tried again for the same spec: an operator has to find the cause first.
"""

from collections.abc import Mapping

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.desired import settings_of
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.instances.drivers import DriverError, StepFailed
from kairship.reconcile import RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation, is_older
from kairship.resources.instance_status import Upgrade

_UPGRADED = InstanceCondition.UPGRADED
_ROLLBACK_REASONS = (InstanceReason.ROLLING_BACK, InstanceReason.UPGRADE_FAILED)


async def upgrade(operation: InstanceOperation, estimators: Mapping[str, bytes]) -> bool:
    """Upgrades the instance to the version of its spec, if that is possible. Returns whether the version changed."""
    writer = operation.writer
    running, wanted = writer.status.karmada_version, operation.spec.version
    if wanted is None or wanted == running:
        writer.set_condition(_UPGRADED, "True", InstanceReason.UP_TO_DATE, f"Karmada {running}".rstrip())
        return False
    if refusal := _refusal(operation, running, wanted):
        reason, message = refusal
        writer.set_condition(_UPGRADED, "False", reason, message)
        return False
    if _was_rolled_back(operation):
        return False
    writer.set(upgrade=Upgrade(from_version=running, to_version=wanted, started_at=writer.now()))
    writer.set_condition(_UPGRADED, "False", InstanceReason.UPGRADING, f"from {running} to {wanted}")
    await writer.write()
    writer.record_event(InstanceReason.UPGRADING, f"from {running} to {wanted}")
    await resume(operation, estimators)
    return True


async def resume(operation: InstanceOperation, estimators: Mapping[str, bytes]) -> None:
    """Carries the upgrade in the status, or its rollback, through to the end."""
    if not any(operation.writer.has_reason(_UPGRADED, reason) for reason in _ROLLBACK_REASONS):
        begun = _begun(operation)
        settings = settings_of(operation.spec, version=begun.to_version, estimators=estimators)
        try:
            await operation.run(Operation.UPGRADE, await operation.driver.upgrade(operation.desired(settings)))
        except (StepFailed, DriverError) as error:
            await _begin_rollback(operation, error)
        else:
            await _complete(operation)
            return
    await _roll_back(operation, estimators)


async def _complete(operation: InstanceOperation) -> None:
    writer = operation.writer
    begun = _begun(operation)
    await credentials.publish(operation)
    writer.set(operation=None, upgrade=None, karmada_version=begun.to_version)
    writer.set_condition(_UPGRADED, "True", InstanceReason.UP_TO_DATE, f"Karmada {begun.to_version}")
    await writer.write()
    writer.record_event(InstanceReason.UP_TO_DATE, f"upgraded from {begun.from_version} to {begun.to_version}")


async def _begin_rollback(operation: InstanceOperation, error: Exception) -> None:
    begun = _begun(operation)
    message = f"the upgrade from {begun.from_version} to {begun.to_version} failed: {error}"
    operation.writer.set_condition(_UPGRADED, "False", InstanceReason.ROLLING_BACK, message)
    await operation.writer.write()
    operation.writer.record_event(InstanceReason.ROLLING_BACK, message, warning=True)


async def _roll_back(operation: InstanceOperation, estimators: Mapping[str, bytes]) -> None:
    writer = operation.writer
    begun = _begun(operation)
    settings = settings_of(operation.spec, version=begun.from_version, estimators=estimators)
    try:
        await operation.run(Operation.ROLL_BACK, await operation.driver.roll_back(operation.desired(settings)))
    except (StepFailed, DriverError) as error:
        message = f"the rollback to {begun.from_version} failed and is tried again: {error}"
        writer.set_condition(_UPGRADED, "False", InstanceReason.UPGRADE_FAILED, message)
        await writer.write()
        writer.record_event(InstanceReason.UPGRADE_FAILED, message, warning=True)
        raise RetryableError(message) from error
    await credentials.publish(operation)
    writer.set(operation=None, upgrade=None)
    writer.set_condition(
        _UPGRADED,
        "False",
        InstanceReason.ROLLED_BACK,
        f"the upgrade to {begun.to_version} failed and was rolled back; the events say why. It is tried again when the "
        "spec changes",
    )
    await writer.write()
    writer.record_event(InstanceReason.ROLLED_BACK, f"Karmada {begun.from_version} runs again", warning=True)


def _refusal(operation: InstanceOperation, running: str, wanted: str) -> tuple[InstanceReason, str] | None:
    if not operation.driver.capabilities.can_upgrade:
        return InstanceReason.NOT_SUPPORTED, f"the driver {operation.spec.driver} does not change versions"
    if is_older(wanted, than=running):
        return (
            InstanceReason.DOWNGRADE_REFUSED,
            f"{running} runs, and {wanted} is older: it may not be able to read the data",
        )
    offered = operation.driver.versions()
    if wanted not in offered:
        return InstanceReason.VERSION_NOT_OFFERED, f"{wanted} is not on offer; available: {', '.join(offered)}"
    return None


def _was_rolled_back(operation: InstanceOperation) -> bool:
    found = operation.writer.find_condition(_UPGRADED)
    return (
        found is not None
        and found.reason == InstanceReason.ROLLED_BACK
        and found.observed_generation == operation.writer.generation
    )


def _begun(operation: InstanceOperation) -> Upgrade:
    begun = operation.status.upgrade
    if begun is None:
        raise AssertionError("no upgrade has begun")
    return begun
