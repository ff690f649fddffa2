"""Keeps the RBAC inside instances and members as the stored bindings mean it.

A key is an instance, looked at as a whole: what its bindings mean together is compared with what it has, so it does not
matter which news came, in which order or how often. What is told to a binding about the whole platform depends on every
instance, and has a key of its own. Bindings, instances, and everything of ours inside an instance wake it: objects that
somebody changed or removed come back at once.
"""

from collections.abc import Iterable, Mapping

from kairship.access import Binding
from kairship.access.storing import BINDING
from kairship.controllers.access import report
from kairship.controllers.access.desired import Desired, desire
from kairship.controllers.access.grants import concerns, gather, subject_name
from kairship.controllers.access.overlooked import PATIENCE, Overlooked
from kairship.controllers.access.report import ToldBinding, Verdict
from kairship.controllers.access.rules import CustomKind
from kairship.controllers.access.sweeping import Sweeping
from kairship.controllers.access.writing import RbacWriter
from kairship.controllers.global_cluster import GlobalCluster, ObservedInstance, instance_key, no_key
from kairship.controllers.inside import Inside, Insides
from kairship.instances.pool import NotConnected, Pool
from kairship.kube import Client, KubeError
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Metrics,
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
from kairship.resources import ScopeLevel, Writer

NAME = Writer.ACCESS.value.removeprefix("kairship-")
PLATFORM = Key("")
_EVERY = 600.0
_STALE = 0.2


def access_controller(
    cluster: GlobalCluster, client: Client, *, pool: Pool, insides: Insides, clock: Clock, metrics: Metrics
) -> Controller:
    # Apart from the bindings themselves: what this controller tells them must not wake it.
    told = Reflector(client, Selection(BINDING, ToldBinding), clock=clock, metrics=metrics)
    access = Access(
        cluster, told, pool=pool, insides=insides, sweeping=Sweeping(pool, clock), overlooked=Overlooked(clock)
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

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.bindings, of_binding),
            Watch(told, no_key),
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
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
        told: Reflector[ToldBinding],
        *,
        pool: Pool,
        insides: Insides,
        sweeping: Sweeping,
        overlooked: Overlooked,
    ) -> None:
        self._cluster = cluster
        self._told = told
        self._pool = pool
        self._insides = insides
        self._sweeping = sweeping
        self._overlooked = overlooked
        # By instance: the bindings about the platform that it has, in their generation, and those members lack.
        self._platform: dict[str, dict[str, tuple[int, frozenset[str]]]] = {}

    async def reconcile(self, context: Context, key: Key) -> Result:
        if key == PLATFORM:
            return await self._tell_platform(context)
        if not self._cluster.in_step(key.name):
            return RetryAfter(_STALE)
        instance = self._cluster.observed.store.get(key.name)
        concerned = self._about(key.name)
        lost = [each for each in concerned if instance is None or each.spec.scope.instance_uid != instance.metadata.uid]
        verdicts = {each.name: (each, _unless_withdrawn(each, report.missing())) for each in lost}
        await report.tell(context, self._told.store, verdicts)
        if instance is None:
            self._platform.pop(key.name, None)
            return await self._tell_platform(context)
        if instance.metadata.deletion_timestamp is not None:
            return DONE
        return await self._keep(context, instance)

    async def _keep(self, context: Context, instance: ObservedInstance) -> Result:
        name, uid = instance.metadata.name, instance.metadata.uid
        bindings = [each for each in self._cluster.bindings.store if concerns(each, uid)]
        own = [each for each in bindings if each.spec.scope.level is not ScopeLevel.PLATFORM]
        try:
            client, inside = self._pool.instance(name), self._insides.get(name)
        except NotConnected as error:
            client, inside, why = None, None, str(error)
        else:
            why = "the instance is being looked at"
        if client is None or inside is None:
            self._platform.pop(name, None)
            await report.tell(context, self._told.store, {each.name: (each, report.not_ready(why)) for each in own})
            await self._tell_platform(context)
            return DONE  # it tells when it can be reached
        clusters = frozenset(
            each.metadata.name for each in inside.clusters.store if each.metadata.deletion_timestamp is None
        )
        desired = desire(
            gather(bindings, uid),
            namespaces={
                each.metadata.name for each in inside.namespaces.store if each.metadata.deletion_timestamp is None
            },
            clusters=clusters,
            kinds=_custom_kinds(inside),
        )
        try:
            written = await RbacWriter(context, client, inside, clusters).bring_to(desired)
        except KubeError as error:
            failed = report.not_ready(str(error))
            await report.tell(context, self._told.store, {each.name: (each, failed) for each in own})
            raise RetryableError(str(error)) from error
        if written.objects:
            context.log.info("rights of people were brought up to date", instance=name, objects=written.objects)
        members = {each.metadata.name for each in self._cluster.members_of(name)}
        await self._sweeping.sweep(context, inside, clusters & members, desired.members)
        soon = await self._overlooked.show_again(context, client, inside)
        pending = written.pending
        self._platform[name] = {
            each.name: (each.metadata.generation, _lacking(each, desired, pending))
            for each in bindings
            if each.spec.scope.level is ScopeLevel.PLATFORM
        }
        told = await report.tell(
            context, self._told.store, {each.name: (each, _verdict(each, desired, pending)) for each in own}
        )
        told_all = await self._tell_platform(context)
        if not told or told_all is not DONE:
            return RetryAfter(_STALE)
        return RetryAfter(PATIENCE if soon else jittered(_EVERY))

    def _about(self, instance: str) -> list[Binding]:
        return [each for each in self._cluster.bindings.store if each.spec.scope.instance == instance]

    async def _tell_platform(self, context: Context) -> Result:
        """Of what is about no single instance."""
        verdicts = {}
        instances = [each.metadata.name for each in self._cluster.wanted.store if not each.metadata.deletion_timestamp]
        for binding in self._cluster.bindings.store:
            if binding.spec.scope.instance is None:
                verdicts[binding.name] = (binding, self._on_platform(binding, instances))
        return DONE if await report.tell(context, self._told.store, verdicts) else RetryAfter(_STALE)

    def _on_platform(self, binding: Binding, instances: Iterable[str]) -> Verdict:
        if binding.spec.scope.level is not ScopeLevel.PLATFORM:
            return _unless_withdrawn(binding, report.NOT_NEEDED)
        waiting, pending = [], set()
        for instance in instances:
            generation, lacking = self._platform.get(instance, {}).get(binding.name, (-1, frozenset()))
            if generation != binding.metadata.generation:
                waiting.append(instance)
            pending |= {f"{instance}/{cluster}" for cluster in lacking}
        if waiting:
            return report.not_ready(f"not there yet: {', '.join(sorted(waiting)[:10])}")
        return _unless_withdrawn(binding, report.applied(pending=pending, needed=bool(list(instances))))


def _custom_kinds(inside: Inside) -> tuple[CustomKind, ...]:
    return tuple(
        sorted(
            CustomKind(each.spec.group, each.spec.names.plural, each.spec.scope == "Namespaced")
            for each in inside.definitions.store
        )
    )


def _lacking(binding: Binding, desired: Desired, pending: Mapping[str, frozenset[str]]) -> frozenset[str]:
    roles = desired.roles.get(subject_name(binding.spec.subject), frozenset())
    return frozenset().union(*(pending.get(role, frozenset()) for role in roles))


def _verdict(binding: Binding, desired: Desired, pending: Mapping[str, frozenset[str]]) -> Verdict:
    needed = subject_name(binding.spec.subject) in desired.roles
    return _unless_withdrawn(binding, report.applied(pending=_lacking(binding, desired, pending), needed=needed))


def _unless_withdrawn(binding: Binding, verdict: Verdict) -> Verdict:
    return verdict if binding.place is not None else report.WITHDRAWN
