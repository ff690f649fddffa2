"""Keeps the RBAC inside instances and members in step with the stored AccessBindings.

A key is an instance: the RBAC that follows from all its bindings is compared with the RBAC that it has, so the order of
changes does not matter. The status of bindings on the whole platform depends on every instance and has a key of its
own. Bindings, instances and changes inside an instance enqueue it, so that our objects that were changed or removed by
hand come back at once.
"""

from collections.abc import Iterable, Mapping

from kairship.access import Binding
from kairship.access.delivery.binding_store import BINDING
from kairship.controllers.access import binding_conditions
from kairship.controllers.access.admission_writer import AdmissionWriter
from kairship.controllers.access.binding_conditions import BindingWithStatus, Verdict
from kairship.controllers.access.desired import DesiredRbac, desired_rbac
from kairship.controllers.access.grants import applies_to, collect_grants, subject_name
from kairship.controllers.access.orphan_sweep import OrphanSweep
from kairship.controllers.access.rbac_writer import RbacWriter
from kairship.controllers.access.rules import CustomKind
from kairship.controllers.access.work_requeue import PATIENCE, WorkRequeue
from kairship.controllers.global_cluster import GlobalCluster, ObservedInstance, instance_key, no_key
from kairship.controllers.instance_cache import InstanceCache, InstanceCaches
from kairship.controllers.instance_condition import write_instance_condition
from kairship.instances.pool import Health, NotConnected, Pool, TargetKind
from kairship.kube import Client, KubeError
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Metrics,
    Notifications,
    Reflector,
    Result,
    RetryableError,
    RetryAfter,
    RetryPolicy,
    Selection,
    Watch,
    jittered,
    own_key,
)
from kairship.resources import VIRTUAL_PREFIX, InstanceCondition, InstanceReason, ScopeLevel, Writer

NAME = Writer.ACCESS.value.removeprefix("kairship-")
PLATFORM = Key("")
_EVERY = 600.0
_PROBE_EVERY = 0.2


def access_controller(
    cluster: GlobalCluster,
    client: Client,
    *,
    pool: Pool,
    instance_caches: InstanceCaches,
    clock: Clock,
    metrics: Metrics,
) -> Controller:
    # A reflector of its own, because the status that this controller writes must not enqueue it again.
    with_status = Reflector(client, Selection(BINDING, BindingWithStatus), clock=clock, metrics=metrics)
    access = Access(
        cluster,
        with_status,
        pool=pool,
        instance_caches=instance_caches,
        sweep=OrphanSweep(pool, clock),
        requeue=WorkRequeue(clock),
    )

    def of_binding(binding: Binding) -> Iterable[Key]:
        scope = binding.spec.scope
        if scope.instance is not None:
            yield instance_key(scope.instance)
            return
        yield PLATFORM
        if scope.level is ScopeLevel.PLATFORM:
            for instance in cluster.wanted.store:
                yield instance_key(instance.metadata.name)

    def of_health(health: Health) -> Iterable[Key]:
        is_member = health.kind is TargetKind.CLUSTER and not health.name.startswith(VIRTUAL_PREFIX)
        if is_member and (membership := cluster.memberships.store.get(health.name)):
            yield instance_key(membership.spec.instance)

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.bindings, of_binding),
            Watch(with_status, no_key),
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
        ),
        sources=(
            Notifications(pool.subscribe, of_health),
            Notifications(instance_caches.subscribe, lambda change: (instance_key(change.instance),)),
        ),
        reconcile=access.reconcile,
        workers=16,
        timeout=600.0,
        retries=RetryPolicy(backoff=Backoff(0.5, 60.0)),
    )


class Access:
    def __init__(
        self,
        cluster: GlobalCluster,
        with_status: Reflector[BindingWithStatus],
        *,
        pool: Pool,
        instance_caches: InstanceCaches,
        sweep: OrphanSweep,
        requeue: WorkRequeue,
    ) -> None:
        self._cluster = cluster
        self._with_status = with_status
        self._pool = pool
        self._instance_caches = instance_caches
        self._sweep = sweep
        self._requeue = requeue
        self._admission = AdmissionWriter()
        # By instance and binding on the platform: the generation that the instance has, and the members without it.
        self._platform: dict[str, dict[str, tuple[int, frozenset[str]]]] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        if key == PLATFORM:
            return await self._write_platform(context)
        if not self._cluster.caches_agree(key.name):
            return STALE
        instance = self._cluster.observed.store.get(key.name)
        lost = [
            each
            for each in self._bindings_on(key.name)
            if instance is None or each.spec.scope.instance_uid != instance.metadata.uid
        ]
        verdicts = {each.name: (each, _unless_withdrawn(each, binding_conditions.missing())) for each in lost}
        await binding_conditions.write_conditions(context, self._with_status.store, verdicts)
        if instance is None:
            self._platform.pop(key.name, None)
            return await self._write_platform(context)
        if instance.metadata.deletion_timestamp is not None:
            return DONE
        return await self._sync(context, instance)

    async def _sync(self, context: Context, instance: ObservedInstance) -> Result:
        name, uid = instance.metadata.name, instance.metadata.uid
        bindings = [each for each in self._cluster.bindings.store if applies_to(each, uid)]
        own = [each for each in bindings if each.spec.scope.level is not ScopeLevel.PLATFORM]
        try:
            client, cache = self._pool.instance(name), self._instance_caches.get(name)
        except NotConnected as error:
            client, cache, why = None, None, str(error)
        else:
            why = "the instance is being read; this takes a moment"
        if client is None or cache is None:
            self._platform.pop(name, None)
            await binding_conditions.write_conditions(
                context, self._with_status.store, {each.name: (each, binding_conditions.not_ready(why)) for each in own}
            )
            await self._write_platform(context)
            return DONE  # the pool and the cache enqueue it when that changes
        clusters = frozenset(
            each.metadata.name for each in cache.clusters.store if each.metadata.deletion_timestamp is None
        )
        desired = desired_rbac(
            collect_grants(bindings, uid),
            namespaces={
                each.metadata.name for each in cache.namespaces.store if each.metadata.deletion_timestamp is None
            },
            clusters=clusters,
            kinds=_custom_kinds(cache),
        )
        try:
            enforced = await self._enforce(context, instance, client, cache)
            written = await RbacWriter(context, client, cache, clusters).apply(desired, grant=enforced)
        except KubeError as error:
            failed = binding_conditions.not_ready(str(error))
            await binding_conditions.write_conditions(
                context, self._with_status.store, {each.name: (each, failed) for each in own}
            )
            raise RetryableError(str(error)) from error
        if not enforced:
            return RetryAfter(_PROBE_EVERY)
        if written.objects:
            context.log.info("the RBAC of an instance was updated", instance=name, objects=written.objects)
        members = {each.metadata.name for each in self._cluster.members_of(name)}
        await self._sweep.sweep(context, cache, clusters & members, desired.members)
        soon = await self._requeue.requeue_stuck(context, client, cache)
        pending = written.pending
        self._platform[name] = {
            each.name: (each.metadata.generation, _lacking(each, desired, pending))
            for each in bindings
            if each.spec.scope.level is ScopeLevel.PLATFORM
        }
        written_own = await binding_conditions.write_conditions(
            context, self._with_status.store, {each.name: (each, _verdict(each, desired, pending)) for each in own}
        )
        platform = await self._write_platform(context)
        if not written_own or platform is not DONE:
            return STALE
        return RetryAfter(PATIENCE if soon else jittered(_EVERY))

    async def _enforce(
        self, context: Context, instance: ObservedInstance, client: Client, cache: InstanceCache
    ) -> bool:
        """Whether the admission policies are in effect. Until then no right is written, but rights are withdrawn."""
        kind = InstanceCondition.POLICIES_ENFORCED
        try:
            enforced = await self._admission.enforce(context, client, cache)
        except KubeError as error:
            context.log.warning("the admission policies of an instance are not enforced", error=str(error))
            await write_instance_condition(context, instance, kind, "False", InstanceReason.NOT_ENFORCED, str(error))
            return False
        if enforced:
            await write_instance_condition(context, instance, kind, "True", InstanceReason.ENFORCED)
        return enforced

    def _bindings_on(self, instance: str) -> list[Binding]:
        return [each for each in self._cluster.bindings.store if each.spec.scope.instance == instance]

    async def _write_platform(self, context: Context) -> Result:
        """Writes the conditions of the bindings that name no instance."""
        verdicts = {}
        instances = [each.metadata.name for each in self._cluster.wanted.store if not each.metadata.deletion_timestamp]
        for binding in self._cluster.bindings.store:
            if binding.spec.scope.instance is None:
                verdicts[binding.name] = (binding, self._on_platform(binding, instances))
        return DONE if await binding_conditions.write_conditions(context, self._with_status.store, verdicts) else STALE

    def _on_platform(self, binding: Binding, instances: Iterable[str]) -> Verdict:
        if binding.spec.scope.level is not ScopeLevel.PLATFORM:
            return _unless_withdrawn(binding, binding_conditions.NOT_NEEDED)
        waiting, pending = [], set()
        for instance in instances:
            generation, lacking = self._platform.get(instance, {}).get(binding.name, (-1, frozenset()))
            if generation != binding.metadata.generation:
                waiting.append(instance)
            pending |= {f"{instance}/{cluster}" for cluster in lacking}
        if waiting:
            named = ", ".join(sorted(waiting)[:10])
            return binding_conditions.not_ready(f"these instances do not have it yet: {named}")
        return _unless_withdrawn(binding, binding_conditions.applied(pending=pending, needed=bool(list(instances))))


def _custom_kinds(cache: InstanceCache) -> tuple[CustomKind, ...]:
    return tuple(
        sorted(
            CustomKind(each.spec.group, each.spec.names.plural, each.spec.scope == "Namespaced")
            for each in cache.definitions.store
        )
    )


def _lacking(binding: Binding, desired: DesiredRbac, pending: Mapping[str, frozenset[str]]) -> frozenset[str]:
    roles = desired.roles.get(subject_name(binding.spec.subject), frozenset())
    return frozenset().union(*(pending.get(role, frozenset()) for role in roles))


def _verdict(binding: Binding, desired: DesiredRbac, pending: Mapping[str, frozenset[str]]) -> Verdict:
    needed = subject_name(binding.spec.subject) in desired.roles
    return _unless_withdrawn(
        binding, binding_conditions.applied(pending=_lacking(binding, desired, pending), needed=needed)
    )


def _unless_withdrawn(binding: Binding, verdict: Verdict) -> Verdict:
    return verdict if binding.grant_scope is not None else binding_conditions.WITHDRAWN
