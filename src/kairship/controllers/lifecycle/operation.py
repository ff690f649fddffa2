"""One reconcile of one instance: what its operations work with, and how they run the steps of a driver."""

from collections.abc import Sequence
from dataclasses import dataclass

from kairship.controllers.lifecycle.backup_store import BackupStore
from kairship.controllers.lifecycle.instance_status import InstanceStatusWriter
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import DesiredInstance, Driver, Step, StepFailed
from kairship.reconcile import Context
from kairship.resources import Instance, InstanceSpec, InstanceStatus, Operation


@dataclass(frozen=True)
class InstanceOperation:
    """What every operation of one reconcile works with."""

    context: Context
    writer: InstanceStatusWriter
    driver: Driver
    backups: BackupStore

    @property
    def instance(self) -> Instance:
        return self.writer.instance

    @property
    def spec(self) -> InstanceSpec:
        return self.writer.instance.spec

    @property
    def status(self) -> InstanceStatus:
        """The lifecycle's own part of the status, with what has not been written yet."""
        return self.writer.status

    @property
    def uid(self) -> str:
        return self.writer.instance.metadata.uid

    @property
    def adopts(self) -> bool:
        """Whether the Karmada belongs to another operator: it is adopted and released, never created or destroyed."""
        return not self.driver.capabilities.can_destroy

    def desired(self, settings: KarmadaSettings) -> DesiredInstance:
        return DesiredInstance(uid=self.uid, name=self.instance.name, settings=settings)

    async def run(self, operation: Operation, steps: Sequence[Step]) -> None:
        """Runs the steps and writes each one into the status before it begins. Raises `StepFailed`.

        Steps are idempotent: after an interruption all of them run again, from the first.
        """
        for position, step in enumerate(steps, start=1):
            await self.writer.write_progress(
                operation, step=step.name, summary=step.summary, position=position, total=len(steps)
            )
            self.context.log.info("step", operation=str(operation), step=step.name, position=position, of=len(steps))
            try:
                await step.run()
            except Exception as error:
                self.check_term()
                raise StepFailed(step, error) from error

    def check_term(self) -> None:
        """Raises `TermEnded` if this process no longer leads: then a failure says nothing about the instance."""
        if self.context.term is not None:
            self.context.term.check()
