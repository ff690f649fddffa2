"""What should be registered with global management: an instance, and those of its namespaces that a workspace holds.

Which namespaces workspaces hold, global management writes into the status of the instance's registration. Pure.
"""

from collections.abc import Iterable, Mapping

from kairship.controllers.global_cluster import ObservedInstance
from kairship.resources import RegistrationSpec, RegistrationStatus
from kairship.resources.registration import Parent

PRODUCT, INSTANCE, NAMESPACE = "kairship", "instance", "namespace"


def held_namespaces(spec: RegistrationSpec, status: RegistrationStatus, instance_uid: str) -> frozenset[str]:
    """The namespaces of an instance that workspaces hold, as its registration says; not that of an earlier instance."""
    return frozenset(status.namespaces) if spec.uid == instance_uid else frozenset()


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
