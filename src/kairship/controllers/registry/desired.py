"""The desired Registrations: of an instance, of those of its namespaces that a workspace holds, and of clusters.

Global management writes which namespaces workspaces hold into the status of the instance's Registration. The functions
are pure.
"""

from collections.abc import Iterable, Mapping

from kairship.controllers.global_cluster import ObservedInstance, RegisteredCluster
from kairship.resources import RegistrationSpec, RegistrationStatus
from kairship.resources.registration import Parent

PRODUCT, INSTANCE, NAMESPACE = "kairship", "instance", "namespace"
CONTAINER_MANAGEMENT, CLUSTER = "kpanda", "cluster"


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


def cluster_registration(cluster: RegisteredCluster) -> dict[str, RegistrationSpec]:
    """The Registration of a cluster by its name. A hidden cluster has none: its instance is registered."""
    if cluster.spec.virtual:
        return {}
    name = cluster.metadata.name
    spec = RegistrationSpec(
        product=CONTAINER_MANAGEMENT,
        resource_type=CLUSTER,
        resource=name,
        uid=cluster.metadata.uid,
        display_name=cluster.spec.alias,
    )
    return {f"{CONTAINER_MANAGEMENT}.{CLUSTER}.{name}": spec}


def cluster_of(spec: RegistrationSpec) -> str | None:
    """The cluster that a Registration is about."""
    return spec.resource if (spec.product, spec.resource_type) == (CONTAINER_MANAGEMENT, CLUSTER) else None


def instance_of(spec: RegistrationSpec) -> str | None:
    """The instance that a Registration of our product is about."""
    if spec.product != PRODUCT:
        return None
    if spec.parent is not None:
        return spec.parent.name
    return spec.resource if spec.resource_type == INSTANCE else None
