"""One look at one instance: what its operations work with, and how they run a driver's steps."""

from collections.abc import Sequence
from dataclasses import dataclass

from kairship.controllers.lifecycle.backup_store import BackupStore
from kairship.controllers.lifecycle.journal import Journal
from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import DesiredInstance, Driver, Step, StepFailed
from kairship.reconcile import Context
from kairship.resources import Instance, InstanceSpec, Operation


@dataclass(frozen=True)
class Work:
    context: Context
    journal: Journal
    driver: Driver
    backups: BackupStore

    @property
    def instance(self) -> Instance:
        return self.journal.instance

    @property
    def spec(self) -> InstanceSpec:
        return self.journal.instance.spec

    @property
    def uid(self) -> str:
        return self.journal.instance.metadata.uid

    @property
    def adopts(self) -> bool:
        """Whether the Karmada is somebody else's: it is taken over and let go, never made or destroyed."""
        return not self.driver.capabilities.can_destroy

    def desired(self, settings: KarmadaSettings) -> DesiredInstance:
        return DesiredInstance(uid=self.uid, name=self.instance.name, settings=settings)

    async def run(self, operation: Operation, steps: Sequence[Step]) -> None:
        """Run the steps, each shown in the status before it begins. Raises `StepFailed`.

        Steps are idempotent: after an interruption all of them run again, from the first.
        """
        for position, step in enumerate(steps, start=1):
            await self.journal.show(
                operation, step=step.name, summary=step.summary, position=position, total=len(steps)
            )
            self.context.log.info("step", operation=str(operation), step=step.name, position=position, of=len(steps))
            try:
                await step.run()
            except Exception as error:
                self.check_term()
                raise StepFailed(step, error) from error

    def check_term(self) -> None:
        """Raises `TermEnded` if this process does not lead any more: whatever failed then says nothing."""
        if self.context.term is not None:
            self.context.term.check()
