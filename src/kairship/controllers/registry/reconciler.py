"""Registers instances, namespaces that workspaces hold, and the catalogue with global management, by custom resource.

A key is an instance, or a product of the catalogue. Registrations and products wake it too, so that what somebody
deleted or changed by hand comes back; what belongs to an instance that is gone is removed whenever it is seen. Rights
do not pass on: what was made anew under a name used before is another registration.
"""

from collections.abc import Callable, Iterable

import msgspec

from kairship.access import products
from kairship.controllers.global_cluster import GlobalCluster, ObservedInstance, instance_key, no_key
from kairship.controllers.inside import Insides
from kairship.controllers.registry.wanted import held_namespaces, instance_of, registrations
from kairship.controllers.telling import tell
from kairship.kube import Client, Conflict
from kairship.reconcile import (
    DONE,
    Backoff,
    Clock,
    Context,
    Controller,
    Key,
    Metadata,
    Metrics,
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
_CATALOGUE = "catalogue"
_EVERY = 600.0
_STALE = 0.2


class KnownRegistration(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: RegistrationSpec
    status: RegistrationStatus = RegistrationStatus()


class KnownProduct(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: ProductSpec


def registry_controller(
    cluster: GlobalCluster, client: Client, *, insides: Insides, clock: Clock, metrics: Metrics
) -> Controller:
    known = Reflector(client, Selection(REGISTRATION, KnownRegistration), clock=clock, metrics=metrics)
    catalogue = Reflector(client, Selection(PRODUCT, KnownProduct), clock=clock, metrics=metrics)
    registry = Registry(cluster, known, catalogue, insides=insides)

    def of_registration(registration: KnownRegistration) -> Iterable[Key]:
        if (instance := instance_of(registration.spec)) is not None:
            yield instance_key(instance)

    return Controller(
        name=NAME,
        watches=(
            Watch(cluster.wanted, own_key),
            Watch(cluster.observed, no_key),
            Watch(known, of_registration),
            _Catalogue(catalogue, _of_product),
        ),
        reconcile=registry.reconcile,
        workers=4,
        timeout=60.0,
        retries=RetryPolicy(backoff=Backoff(0.5, 60.0)),
    )


class _Catalogue(Watch[KnownProduct]):
    """Wakes for what should be there as well as for what is: at first nothing is."""

    def subscribe(self, add: Callable[[Key], None]) -> Callable[[], None]:
        for name in products():
            add(_product_key(name))
        return super().subscribe(add)


def _product_key(product: str) -> Key:
    return Key(product, namespace=_CATALOGUE)


def _of_product(product: KnownProduct) -> Iterable[Key]:
    yield _product_key(product.metadata.name)


class Registry:
    def __init__(
        self,
        cluster: GlobalCluster,
        known: Reflector[KnownRegistration],
        catalogue: Reflector[KnownProduct],
        *,
        insides: Insides,
    ) -> None:
        self._cluster = cluster
        self._known = known
        self._catalogue = catalogue
        self._insides = insides

    async def reconcile(self, context: Context, key: Key) -> Result:
        if key.namespace == _CATALOGUE:
            return await self._offer(context, key.name)
        if not self._cluster.in_step(key.name):
            return RetryAfter(_STALE)
        instance = self._cluster.observed.store.get(key.name)
        existing = [each for each in self._known.store if instance_of(each.spec) == key.name]
        wanted = self._wanted(instance, existing) if instance is not None else {}
        removed = False
        for each in existing:
            expected = wanted.get(each.metadata.name)
            if expected is None or (expected.uid, expected.parent) != (each.spec.uid, each.spec.parent):
                removed |= await _remove(context.client, each)
        if removed:
            return RetryAfter(_STALE)
        found = {each.metadata.name: each.spec for each in existing}
        for name, spec in wanted.items():
            if found.get(name) != spec:
                await context.owner.apply(REGISTRATION, {"metadata": {"name": name}, "spec": msgspec.to_builtins(spec)})
        if instance is None or instance.metadata.deletion_timestamp is not None:
            return DONE
        return await self._tell(context, instance)

    def _wanted(self, instance: ObservedInstance, existing: Iterable[KnownRegistration]) -> dict[str, RegistrationSpec]:
        inside = self._insides.get(instance.metadata.name)
        own_one = self._known.store.get(f"kairship.instance.{instance.metadata.name}")
        held = held_namespaces(own_one.spec, own_one.status, instance.metadata.uid) if own_one is not None else ()
        if inside is not None:
            namespaces = {each.metadata.name: each.metadata.uid for each in inside.namespaces.store}
        else:
            # What cannot be asked is taken to be as it was.
            own = Parent(resource_type="instance", name=instance.metadata.name)
            namespaces = {each.spec.resource: each.spec.uid for each in existing if each.spec.parent == own}
        return registrations(instance, held, namespaces)

    async def _offer(self, context: Context, product: str) -> Result:
        spec, known = products().get(product), self._catalogue.store.get(product)
        if spec is None:
            return DONE  # somebody else's
        if known is None or known.spec != spec:
            await context.owner.apply(PRODUCT, {"metadata": {"name": product}, "spec": msgspec.to_builtins(spec)})
        return RetryAfter(jittered(_EVERY))

    async def _tell(self, context: Context, instance: ObservedInstance) -> Result:
        """What global management made of it."""
        registration = self._known.store.get(f"kairship.instance.{instance.metadata.name}")
        said = (
            find_condition(registration.status.conditions, RegistrationCondition.REGISTERED)
            if registration is not None
            else None
        )
        known = said is not None and said.status == "True"
        told = await tell(
            context,
            instance,
            InstanceCondition.REGISTERED,
            "True" if known else "False",
            InstanceReason.REGISTERED if known else InstanceReason.REGISTRATION_PENDING,
            said.message if said is not None else "",
        )
        if not told:
            return RetryAfter(_STALE)
        return RetryAfter(jittered(_EVERY))


async def _remove(client: Client, registration: KnownRegistration) -> bool:
    """Whether there was something to remove."""
    if registration.metadata.deletion_timestamp is None:
        try:
            await client.delete(
                REGISTRATION, registration.metadata.name, uid=registration.metadata.uid, missing_ok=True
            )
        except Conflict:
            return True  # another one of this name: the next look is at that one
    return True
