"""The instance of the demo: an `Instance` like anybody's, made by the lifecycle controller and followed here.

`up` asks for it once. It then waits until the controllers are done with it, telling what they are at, and has them go
over it again when a process of it has been removed behind their back.
"""

import asyncio
import time

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.desired import settings_of
from kairship.embedded import demo, roles
from kairship.embedded.report import Reporter
from kairship.instances.drivers import DesiredInstance, DriverError, LocalDriver
from kairship.instances.drivers.waiting import until
from kairship.kube import AlreadyExists, Client, NotFound
from kairship.resources import Instance, InstanceCondition, find_condition, is_true
from kairship.supervisor import SupervisorClient

PATIENCE = 180.0
# Controllers try again by themselves; what they could not do for so long, a person has to look at.
FAILING_FOR = 20.0
_POLL = 0.2
_SUBJECT = f"instance {demo.INSTANCE}"


class DemoInstance:
    def __init__(self, client: Client, *, driver: LocalDriver, supervisor: SupervisorClient) -> None:
        """`client` is one of the global cluster."""
        self._client = client
        self._driver = driver
        self._supervisor = supervisor

    async def get(self) -> Instance | None:
        try:
            return await self._client.get(INSTANCE, demo.INSTANCE, as_type=Instance)
        except NotFound:
            return None

    async def ensure(self, reporter: Reporter, *, create: bool) -> Instance | None:
        """The instance, running; or nothing if it has been deleted since it was created."""
        if create:
            await self._create()
        instance = await self._settled(reporter)
        if instance is None:
            reporter.done(_SUBJECT, "deleted; create it again with kubectl, or another")
            return None
        await self._complete(instance, reporter)
        reporter.done(_SUBJECT, f"Karmada {instance.status.karmada_version}, {instance.status.endpoint}")
        return instance

    async def _create(self) -> None:
        spec = {"driver": "local", "alias": "Demo", "description": "What `kairship up` begins with."}
        try:
            await self._client.create(INSTANCE, {"metadata": {"name": demo.INSTANCE}, "spec": spec})
        except AlreadyExists:
            return

    async def _settled(self, reporter: Reporter) -> Instance | None:
        deadline = time.monotonic() + PATIENCE
        failing_since: float | None = None
        while (instance := await self.get()) is not None:
            if _is_settled(instance):
                return instance
            failure = _failure(instance)
            failing_since = (failing_since or time.monotonic()) if failure else None
            if failing_since and time.monotonic() - failing_since > FAILING_FOR:
                raise DriverError(f"{_SUBJECT}: {failure}")
            if time.monotonic() > deadline:
                raise DriverError(f"{_SUBJECT} was not ready within {PATIENCE:g} s: {failure or _activity(instance)}")
            reporter.doing(_SUBJECT, failure or _activity(instance))
            await asyncio.sleep(_POLL)
        return None

    async def _complete(self, instance: Instance, reporter: Reporter) -> None:
        """Every process of it there and ready. A new leader goes over all instances: that puts back what is missing."""
        desired = DesiredInstance(
            uid=instance.metadata.uid,
            name=instance.metadata.name,
            settings=settings_of(instance.spec, version=instance.status.karmada_version, estimators={}),
        )
        if missing := await self._driver.missing(desired):
            reporter.doing(_SUBJECT, f"putting back {', '.join(missing)}")
            await self._supervisor.restart(roles.CONTROLLER_MANAGER)
            await until(lambda: self._still_missing(desired), what="putting them back", timeout=PATIENCE)
        await self._supervisor.wait_ready(f"instance-{demo.INSTANCE}", timeout=PATIENCE)

    async def _still_missing(self, desired: DesiredInstance) -> str | None:
        return ", ".join(await self._driver.missing(desired)) or None


def _is_settled(instance: Instance) -> bool:
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
    """What the controllers could not do, in words; empty while nothing failed."""
    for kind in (InstanceCondition.CREATED, InstanceCondition.CONFIGURED):
        condition = find_condition(instance.status.conditions, kind)
        if condition is not None and condition.reason.endswith("Failed"):
            return condition.message
    return ""
