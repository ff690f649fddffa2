"""The desired Registrations of an instance: itself, and those of its namespaces that a workspace holds. Pure functions.

Global management writes which namespaces workspaces hold into the status of the instance's Registration.
"""

from collections.abc import Iterable, Mapping

from kairship.controllers.global_cluster import ObservedInstance
from kairship.resources import RegistrationSpec, RegistrationStatus
from kairship.resources.registration import Parent

PRODUCT, INSTANCE, NAMESPACE = "kairship", "instance", "namespace"


def held_namespaces(spec: RegistrationSpec, status: RegistrationStatus, instance_uid: str) -> frozenset[str]:
    """The namespaces that workspaces hold. A Registration of an earlier instance of the same name says nothing."""
    return frozenset(status.namespaces) if spec.uid == instance_uid else frozenset()


def registrations(
    instance: ObservedInstance, held: Iterable[str], namespaces: Mapping[str, str]
) -> dict[str, RegistrationSpec]:
    """The Registrations by name. `namespaces` are the UIDs of the namespaces that the instance has, by name."""
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
    """The instance that a Registration of our product is about."""
    if spec.product != PRODUCT:
        return None
    if spec.parent is not None:
        return spec.parent.name
    return spec.resource if spec.resource_type == INSTANCE else None
