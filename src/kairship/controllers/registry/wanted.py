"""What should be registered with global management: an instance, and those of its namespaces that a workspace holds.

That a workspace holds a namespace shows in the bindings that come of it. Pure functions.
"""

from collections.abc import Iterable, Mapping

from kairship.access import Binding
from kairship.controllers.global_cluster import ObservedInstance
from kairship.resources import RegistrationSpec, ScopeLevel
from kairship.resources.access_binding import OriginKind
from kairship.resources.registration import Parent

PRODUCT, INSTANCE, NAMESPACE = "kairship", "instance", "namespace"


def held_namespaces(bindings: Iterable[Binding], instance_uid: str) -> frozenset[str]:
    """The namespaces of an instance that workspaces hold."""
    return frozenset(
        scope.namespace
        for binding in bindings
        if (scope := binding.spec.scope).level is ScopeLevel.NAMESPACE
        and scope.instance_uid == instance_uid
        and scope.namespace is not None
        and binding.spec.origin.kind in {OriginKind.WORKSPACE, OriginKind.FOLDER}
        and binding.place is not None
    )


def registrations(
    instance: ObservedInstance, held: Iterable[str], namespaces: Mapping[str, str]
) -> dict[str, RegistrationSpec]:
    """By name. `namespaces` are those that the instance has, with their UIDs."""
    name = instance.metadata.name
    wanted = {
        f"{PRODUCT}.{INSTANCE}.{name}": RegistrationSpec(
            product=PRODUCT,
            resource_type=INSTANCE,
            resource=name,
            uid=instance.metadata.uid,
            display_name=instance.spec.alias,
        )
    }
    for namespace in sorted(held):
        if namespace in namespaces:
            wanted[f"{PRODUCT}.{NAMESPACE}.{name}.{namespace}"] = RegistrationSpec(
                product=PRODUCT,
                resource_type=NAMESPACE,
                resource=namespace,
                uid=namespaces[namespace],
                parent=Parent(resource_type=INSTANCE, name=name),
            )
    return wanted


def instance_of(spec: RegistrationSpec) -> str | None:
    """The instance that a registration of ours is about."""
    if spec.product != PRODUCT:
        return None
    if spec.parent is not None:
        return spec.parent.name
    return spec.resource if spec.resource_type == INSTANCE else None
