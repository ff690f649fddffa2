"""Creating an instance, adopting one, and bringing a running one to the settings of its spec.

All three are the driver's `converge`: what differs is what people are told. It runs when the settings are not known to
be in effect, and now and then when they are: certificates are renewed that way, and what somebody broke is repaired.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kairship.controllers.lifecycle import credentials
from kairship.controllers.lifecycle.desired import asks_for_settings, first_version, settings_of
from kairship.controllers.lifecycle.work import Work
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import AdoptRefused, DriverError, StepFailed
from kairship.reconcile import Clock, RetryableError
from kairship.resources import InstanceCondition, InstanceReason, Operation

EVERY = 12 * 3600.0
"""How often a running instance is gone over although nothing has changed."""

REFUSED_AGAIN = 300.0
"""What makes an adoption impossible is mended where nobody tells us: in the Karmada."""


@dataclass
class InEffect:
    """The settings that this process has brought into effect, and when. A new leader goes over everything once."""

    clock: Clock
    _known: dict[str, tuple[KarmadaSettings, float]] = field(default_factory=dict)

    def holds(self, uid: str, settings: KarmadaSettings) -> bool:
        known, since = self._known.get(uid, (None, 0.0))
        return known == settings and self.clock.now() - since < EVERY

    def remember(self, uid: str, settings: KarmadaSettings) -> None:
        self._known[uid] = (settings, self.clock.now())

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)


async def settle(work: Work, in_effect: InEffect, estimators: Mapping[str, bytes]) -> KarmadaSettings | None:
    """Bring the instance to its settings, in the version that it runs. None if it cannot be created as it is asked for.

    Raises `RetryableError` when a step failed.
    """
    journal = work.journal
    version = _version(work)
    if version is None:
        _refuse_version(work)
        return None
    settings = settings_of(work.spec, version=version, estimators=estimators)
    if not in_effect.holds(work.uid, settings):
        await _converge(work, settings)
        in_effect.remember(work.uid, settings)
    await credentials.publish(work)
    if work.driver.capabilities.can_configure or not asks_for_settings(work.spec):
        journal.state(InstanceCondition.CONFIGURED, "True", InstanceReason.CONFIGURED)
    else:
        message = f"the driver {work.spec.driver} does not change settings: change them where the Karmada is run"
        journal.state(InstanceCondition.CONFIGURED, "False", InstanceReason.NOT_SUPPORTED, message)
    _exists(work)
    journal.set(operation=None, observed_generation=journal.generation)
    await journal.write()
    return settings


def _version(work: Work) -> str | None:
    if work.adopts:
        return work.spec.version or ""  # without one, what is found counts
    return work.journal.status.karmada_version or first_version(work.spec, work.driver.versions())


async def _converge(work: Work, settings: KarmadaSettings) -> None:
    journal = work.journal
    is_new = not journal.holds(InstanceCondition.CREATED)
    # Written with the first step: whoever resumes must not take up another version half way.
    journal.set(karmada_version=settings.version)
    if is_new:
        kind, begun, failed = InstanceCondition.CREATED, InstanceReason.CREATING, InstanceReason.CREATE_FAILED
    else:
        kind, begun, failed = InstanceCondition.CONFIGURED, InstanceReason.CONFIGURING, InstanceReason.CONFIGURE_FAILED
    # A pass over what is in effect changes no condition, and after a failure people read why until it is overcome.
    is_routine = not is_new and journal.status.observed_generation == journal.generation
    if not is_routine and not journal.gives(kind, failed):
        journal.state(kind, "False", begun)
    try:
        steps = await work.driver.converge(work.desired(settings))
        await work.run(Operation.CREATE if is_new else Operation.CONFIGURE, steps)
    except (StepFailed, DriverError) as error:
        refused = isinstance(error, AdoptRefused) or isinstance(error.__cause__, AdoptRefused)
        reason = InstanceReason.ADOPT_REFUSED if refused and is_new else failed
        journal.state(kind, "False", reason, str(error))
        await journal.write()
        journal.announce(reason, str(error), warning=True)
        raise RetryableError(str(error), after=REFUSED_AGAIN if refused else 0.0) from error


def _exists(work: Work) -> None:
    journal, version = work.journal, work.journal.status.karmada_version
    if journal.holds(InstanceCondition.CREATED):
        return
    reason = InstanceReason.ADOPTED if work.adopts else InstanceReason.CREATED
    message = f"Karmada {version}".rstrip()
    journal.state(InstanceCondition.CREATED, "True", reason, message)
    journal.announce(reason, message)


def _refuse_version(work: Work) -> None:
    offered = ", ".join(work.driver.versions())
    message = (
        f"Karmada {work.spec.version} is not on offer; available: {offered}"
        if offered
        else "no version of Karmada is on offer: the controller-manager finds no binaries; see `kairship engine list`"
    )
    work.journal.state(InstanceCondition.CREATED, "False", InstanceReason.CREATE_FAILED, message)
    work.journal.state(InstanceCondition.UPGRADED, "False", InstanceReason.VERSION_NOT_OFFERED, message)
