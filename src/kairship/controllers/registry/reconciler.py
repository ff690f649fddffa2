"""Registers instances, namespaces that workspaces hold, clusters, and the catalogue with global management.

A key is an instance, a cluster, or a Product of the catalogue. Registrations and Products enqueue their key too, so
that what was deleted or changed by hand comes back, and Registrations of what is gone are removed whenever they are
seen.
Rights do not pass on: an instance that was created again under its old name gets another Registration.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kairship.access import products
from kairship.controllers.global_cluster import (
    GlobalCluster,
    ObservedInstance,
    RegisteredCluster,
    instance_key,
    no_key,
)
from kairship.controllers.instance_cache import InstanceCaches, InstanceChange, Topic
from kairship.controllers.instance_condition import write_instance_condition
from kairship.controllers.registry.desired import (
    cluster_of,
    cluster_registration,
    held_namespaces,
    instance_of,
    registrations,
)
from kairship.kube import Client, Conflict
from kairship.reconcile import (
    DONE,
    STALE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Metadata,
    Metrics,
    Notifications,
    Reflector,
    Result,
    RetryAfter,
    RetryPolicy,
    Selection,
    Watch,
    jittered,
    own_key,
    resource_of,
)
from kairship.resources import (
    PRODUCTS,
    REGISTRATIONS,
    InstanceCondition,
    InstanceReason,
    ProductSpec,
    RegistrationCondition,
    RegistrationSpec,
    RegistrationStatus,
    Writer,
    find_condition,
)
from kairship.resources.registration import Parent

NAME = Writer.INSTANCE_REGISTRY.value.removeprefix("kairship-")
REGISTRATION, PRODUCT = resource_of(REGISTRATIONS), resource_of(PRODUCTS)
_CATALOGUE, _CLUSTERS = "catalogue", "clusters"
_EVERY = 600.0


class KnownRegistration(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: RegistrationSpec
    status: RegistrationStatus = RegistrationStatus()


class KnownProduct(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: ProductSpec


def registry_controller(
    cluster: GlobalCluster, client: Client, *, instance_caches: InstanceCaches, clock: Clock, metrics: Metrics
) -> Controller:
    known = Reflector(client, Selection(REGISTRATION, KnownRegistration), clock=clock, metrics=metrics)
    catalogue = Reflector(client, Selection(PRODUCT, KnownProduct), clock=clock, metrics=metrics)
    registry = Registry(cluster, known, catalogue, instance_caches=instance_caches)

    def of_registration(registration: KnownRegistration) -> Iterable[Key]:
        if (instance := instance_of(registration.spec)) is not None:
            yield instance_key(instance)
        elif (name := cluster_of(registration.spec)) is not None:
            yield _cluster_key(name)

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
            Watch(cluster.clusters, _of_cluster),
            Watch(known, of_registration),
            _Catalogue(catalogue, _of_product),
        ),
        sources=(Notifications(instance_caches.subscribe, _of_change),),
        reconcile=registry.reconcile,
        workers=4,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(0.5, 60.0)),
    )


class _Catalogue(Watch[KnownProduct]):
    """Enqueues the Products that should exist as well as those that do: at first there are none."""

    def subscribe(self, enqueue: Callable[[Key], None]) -> Callable[[], None]:
        for name in products():
            enqueue(_product_key(name))
        return super().subscribe(enqueue)


def _of_change(change: InstanceChange) -> Iterable[Key]:
    if change.topic in {Topic.NAMESPACES, Topic.AVAILABILITY}:
        yield instance_key(change.instance)


def _product_key(product: str) -> Key:
    return Key(product, namespace=_CATALOGUE)


def _cluster_key(cluster: str) -> Key:
    return Key(cluster, namespace=_CLUSTERS)


def _of_cluster(cluster: RegisteredCluster) -> Iterable[Key]:
    yield _cluster_key(cluster.metadata.name)


def _of_product(product: KnownProduct) -> Iterable[Key]:
    yield _product_key(product.metadata.name)


class Registry:
    """Reconciles Registrations and Products."""

    def __init__(
        self,
        cluster: GlobalCluster,
        known: Reflector[KnownRegistration],
        catalogue: Reflector[KnownProduct],
        *,
        instance_caches: InstanceCaches,
    ) -> None:
        self._cluster = cluster
        self._known = known
        self._catalogue = catalogue
        self._instance_caches = instance_caches

    async def reconcile(self, context: Context, key: Key) -> Result:
        if key.namespace == _CATALOGUE:
            return await self._sync_product(context, key.name)
        if key.namespace == _CLUSTERS:
            return await self._sync_cluster(context, key.name)
        if not self._cluster.caches_agree(key.name):
            return STALE
        instance = self._cluster.observed.store.get(key.name)
        existing = [each for each in self._known.store if instance_of(each.spec) == key.name]
        wanted = self._wanted(instance, existing) if instance is not None else {}
        if not await _sync_registrations(context, existing, wanted):
            return STALE
        if instance is None or instance.metadata.deletion_timestamp is not None:
            return DONE
        return await self._write_condition(context, instance)

    async def _sync_cluster(self, context: Context, name: str) -> Result:
        cluster = self._cluster.clusters.store.get(name)
        existing = [each for each in self._known.store if cluster_of(each.spec) == name]
        wanted = cluster_registration(cluster) if cluster is not None else {}
        if not await _sync_registrations(context, existing, wanted):
            return STALE
        return RetryAfter(jittered(_EVERY)) if wanted else DONE

    def _wanted(self, instance: ObservedInstance, existing: Iterable[KnownRegistration]) -> dict[str, RegistrationSpec]:
        cache = self._instance_caches.get(instance.metadata.name)
        own_one = self._known.store.get(f"kairship.instance.{instance.metadata.name}")
        held = held_namespaces(own_one.spec, own_one.status, instance.metadata.uid) if own_one is not None else ()
        if cache is not None:
            namespaces = {each.metadata.name: each.metadata.uid for each in cache.namespaces.store}
        else:
            # While the instance cannot be read, its namespaces are taken to be as they were.
            own = Parent(resource_type="instance", name=instance.metadata.name)
            namespaces = {each.spec.resource: each.spec.uid for each in existing if each.spec.parent == own}
        return registrations(instance, held, namespaces)

    async def _sync_product(self, context: Context, product: str) -> Result:
        spec, known = products().get(product), self._catalogue.store.get(product)
        if spec is None:
            return DONE  # a Product that is not ours
        if known is None or known.spec != spec:
            await context.owner.apply(PRODUCT, {"metadata": {"name": product}, "spec": msgspec.to_builtins(spec)})
        return RetryAfter(jittered(_EVERY))

    async def _write_condition(self, context: Context, instance: ObservedInstance) -> Result:
        """Writes whether global management has accepted the Registration."""
        registration = self._known.store.get(f"kairship.instance.{instance.metadata.name}")
        accepted = (
            find_condition(registration.status.conditions, RegistrationCondition.REGISTERED)
            if registration is not None
            else None
        )
        known = accepted is not None and accepted.status == "True"
        written = await write_instance_condition(
            context,
            instance,
            InstanceCondition.REGISTERED,
            "True" if known else "False",
            InstanceReason.REGISTERED if known else InstanceReason.REGISTRATION_PENDING,
            accepted.message if accepted is not None else "",
        )
        if not written:
            return STALE
        return RetryAfter(jittered(_EVERY))


async def _sync_registrations(
    context: Context, existing: Iterable[KnownRegistration], wanted: Mapping[str, RegistrationSpec]
) -> bool:
    """Brings the Registrations to what is wanted. Returns False if it had to delete one, which the cache still has."""
    removed, found = False, {}
    for each in existing:
        found[each.metadata.name] = each.spec
        expected = wanted.get(each.metadata.name)
        if expected is None or (expected.uid, expected.parent) != (each.spec.uid, each.spec.parent):
            removed |= await _remove(context.client, each)
    if removed:
        return False
    for name, spec in wanted.items():
        if found.get(name) != spec:
            await context.owner.apply(REGISTRATION, {"metadata": {"name": name}, "spec": msgspec.to_builtins(spec)})
    return True


async def _remove(client: Client, registration: KnownRegistration) -> bool:
    """Deletes a Registration. Returns True, because the cache still has it."""
    if registration.metadata.deletion_timestamp is None:
        try:
            await client.delete(
                REGISTRATION, registration.metadata.name, uid=registration.metadata.uid, missing_ok=True
            )
        except Conflict:
            return True  # another Registration of this name exists since; the next reconcile compares it
    return True
