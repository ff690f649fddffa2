"""The demo instance: an ordinary `Instance` that the lifecycle controller creates.

The first `up` creates the object. Every `up` then waits until the controllers have finished with it and reports their
progress. If a process of the instance has been removed from the supervisor, `up` makes the controllers reconcile again.
"""

import asyncio
import time

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.desired import settings_of
from kairship.embedded import demo, plane_processes
from kairship.embedded.reporter import Reporter
from kairship.instances.drivers import DesiredInstance, DriverError, LocalDriver
from kairship.instances.drivers.polling import until
from kairship.kube import AlreadyExists, Client, NotFound
from kairship.resources import Instance, InstanceCondition, find_condition, is_true
from kairship.supervisor import SupervisorClient

READY_TIMEOUT = 180.0
# Controllers retry by themselves; a failure that lasts longer than this is reported to the user.
FAILURE_TOLERANCE = 20.0
_POLL = 0.2
_SUBJECT = f"instance {demo.INSTANCE}"


class DemoInstance:
    def __init__(self, client: Client, *, driver: LocalDriver, supervisor: SupervisorClient) -> None:
        """`client` is a client of the global cluster."""
        self._client = client
        self._driver = driver
        self._supervisor = supervisor

    async def get(self) -> Instance | None:
        try:
            return await self._client.typed(Instance).get(INSTANCE, demo.INSTANCE)
        except NotFound:
            return None

    async def ensure(self, reporter: Reporter, *, create: bool) -> Instance | None:
        """Return the instance when it runs, or None if a user has deleted it since it was created."""
        if create:
            await self._create()
        instance = await self._wait_configured(reporter)
        if instance is None:
            reporter.done(_SUBJECT, "it has been deleted; create it or another instance with kubectl")
            return None
        await self._restore_processes(instance, reporter)
        reporter.done(_SUBJECT, f"Karmada {instance.status.karmada_version}, {instance.status.endpoint}")
        return instance

    async def _create(self) -> None:
        spec = {"driver": "local", "alias": "Demo", "description": "What `kairship up` begins with."}
        try:
            await self._client.create(INSTANCE, {"metadata": {"name": demo.INSTANCE}, "spec": spec})
        except AlreadyExists:
            return

    async def _wait_configured(self, reporter: Reporter) -> Instance | None:
        deadline = time.monotonic() + READY_TIMEOUT
        failing_since: float | None = None
        while (instance := await self.get()) is not None:
            if _is_configured(instance):
                return instance
            failure = _failure(instance)
            failing_since = (failing_since or time.monotonic()) if failure else None
            if failing_since and time.monotonic() - failing_since > FAILURE_TOLERANCE:
                raise DriverError(f"{_SUBJECT}: {failure}")
            activity = failure or _activity(instance)
            if time.monotonic() > deadline:
                raise DriverError(f"{_SUBJECT} was not ready within {READY_TIMEOUT:g} s: {activity}")
            reporter.doing(_SUBJECT, activity)
            await asyncio.sleep(_POLL)
        return None

    async def _restore_processes(self, instance: Instance, reporter: Reporter) -> None:
        """Restore missing processes of the instance and wait until all are ready.

        The controller-manager is restarted for this: a new leader reconciles every instance.
        """
        desired = DesiredInstance(
            uid=instance.metadata.uid,
            name=instance.metadata.name,
            settings=settings_of(instance.spec, version=instance.status.karmada_version, estimators={}),
        )
        if missing := await self._driver.missing(desired):
            reporter.doing(_SUBJECT, f"restoring {', '.join(missing)}")
            await self._supervisor.restart(plane_processes.CONTROLLER_MANAGER)
            await until(lambda: self._still_missing(desired), what="restoring the processes", timeout=READY_TIMEOUT)
        await self._supervisor.wait_ready(f"instance-{demo.INSTANCE}", timeout=READY_TIMEOUT)

    async def _still_missing(self, desired: DesiredInstance) -> str | None:
        return ", ".join(await self._driver.missing(desired)) or None


def _is_configured(instance: Instance) -> bool:
    status = instance.status
    return (
        status.observed_generation == instance.metadata.generation
        and status.operation is None
        and is_true(status.conditions, InstanceCondition.CREATED)
        and is_true(status.conditions, InstanceCondition.CONFIGURED)
    )


def _activity(instance: Instance) -> str:
    operation = instance.status.operation
    if operation is None:
        return "waiting for the controllers"
    return f"{operation.message or operation.step} ({operation.position}/{operation.total})"


def _failure(instance: Instance) -> str:
    """Why the instance could not be created or configured; empty while nothing failed."""
    for kind in (InstanceCondition.CREATED, InstanceCondition.CONFIGURED):
        condition = find_condition(instance.status.conditions, kind)
        if condition is not None and condition.reason.endswith("Failed"):
            return condition.message
    return ""
