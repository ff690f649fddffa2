"""Creates an instance, adopts one, and brings a running one to the settings of its spec.

All three call the driver's `converge`; only the conditions differ. It runs when the settings are not known to be
applied, and every twelve hours when they are: that renews certificates and repairs what was changed by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.desired import asks_for_settings, first_version, settings_of
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import AdoptRefused, DriverError, StepFailed
from kairship.reconcile import Clock, RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation

EVERY = 12 * 3600.0
"""How often `converge` runs for an instance although nothing has changed, in seconds."""

REFUSED_RETRY = 300.0
"""The pause after a refused adoption: its cause is removed in the Karmada, where no watch shows it."""


@dataclass
class AppliedSettings:
    """The settings that this process has applied, and when. A new leader applies all settings once."""

    clock: Clock
    _known: dict[str, tuple[KarmadaSettings, float]] = field(default_factory=dict)

    def holds(self, uid: str, settings: KarmadaSettings) -> bool:
        known, since = self._known.get(uid, (None, 0.0))
        return known == settings and self.clock.now() - since < EVERY

    def remember(self, uid: str, settings: KarmadaSettings) -> None:
        self._known[uid] = (settings, self.clock.now())

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)


async def provision(
    operation: InstanceOperation, applied: AppliedSettings, estimators: Mapping[str, bytes]
) -> KarmadaSettings | None:
    """Applies the settings of the spec in the version that the instance runs, and returns them.

    Returns None if the instance cannot be created in the version of its spec. Raises `RetryableError` when a step
    failed.
    """
    writer = operation.writer
    version = _version(operation)
    if version is None:
        _refuse_version(operation)
        return None
    settings = settings_of(operation.spec, version=version, estimators=estimators)
    if not applied.holds(operation.uid, settings):
        await _converge(operation, settings)
        applied.remember(operation.uid, settings)
    await credentials.publish(operation)
    if operation.driver.capabilities.can_configure or not asks_for_settings(operation.spec):
        writer.set_condition(InstanceCondition.CONFIGURED, "True", InstanceReason.CONFIGURED)
    else:
        message = f"the driver {operation.spec.driver} does not change settings: change them where the Karmada is run"
        writer.set_condition(InstanceCondition.CONFIGURED, "False", InstanceReason.NOT_SUPPORTED, message)
    _set_created(operation)
    writer.set(operation=None, observed_generation=writer.generation)
    await writer.write()
    return settings


def _version(operation: InstanceOperation) -> str | None:
    if operation.adopts:
        return operation.spec.version or ""  # without a version, the one that is found counts
    return operation.status.karmada_version or first_version(operation.spec, operation.driver.versions())


async def _converge(operation: InstanceOperation, settings: KarmadaSettings) -> None:
    writer = operation.writer
    is_new = not writer.is_true(InstanceCondition.CREATED)
    # Written with the first step: a reconcile that resumes must not continue with another version.
    writer.set(karmada_version=settings.version)
    if is_new:
        kind, begun, failed = InstanceCondition.CREATED, InstanceReason.CREATING, InstanceReason.CREATE_FAILED
    else:
        kind, begun, failed = InstanceCondition.CONFIGURED, InstanceReason.CONFIGURING, InstanceReason.CONFIGURE_FAILED
    # A routine pass changes no condition, and the reason of a failure stays until the failure is overcome.
    is_routine = not is_new and writer.status.observed_generation == writer.generation
    if not is_routine and not writer.has_reason(kind, failed):
        writer.set_condition(kind, "False", begun)
    try:
        steps = await operation.driver.converge(operation.desired(settings))
        await operation.run(Operation.CREATE if is_new else Operation.CONFIGURE, steps)
    except (StepFailed, DriverError) as error:
        refused = isinstance(error, AdoptRefused) or isinstance(error.__cause__, AdoptRefused)
        reason = InstanceReason.ADOPT_REFUSED if refused and is_new else failed
        writer.set_condition(kind, "False", reason, str(error))
        await writer.write()
        writer.record_event(reason, str(error), warning=True)
        raise RetryableError(str(error), after=REFUSED_RETRY if refused else 0.0) from error


def _set_created(operation: InstanceOperation) -> None:
    writer, version = operation.writer, operation.status.karmada_version
    if writer.is_true(InstanceCondition.CREATED):
        return
    reason = InstanceReason.ADOPTED if operation.adopts else InstanceReason.CREATED
    message = f"Karmada {version}".rstrip()
    writer.set_condition(InstanceCondition.CREATED, "True", reason, message)
    writer.record_event(reason, message)


def _refuse_version(operation: InstanceOperation) -> None:
    offered = ", ".join(operation.driver.versions())
    message = (
        f"Karmada {operation.spec.version} is not on offer; available: {offered}"
        if offered
        else "no version of Karmada is on offer: the controller-manager finds no binaries; see `kairship engine list`"
    )
    operation.writer.set_condition(InstanceCondition.CREATED, "False", InstanceReason.CREATE_FAILED, message)
    operation.writer.set_condition(InstanceCondition.UPGRADED, "False", InstanceReason.VERSION_NOT_OFFERED, message)
