"""The Registrations of instances and clusters."""

import msgspec

from kairship.controllers.global_cluster import ObservedInstance, RegisteredCluster
from kairship.controllers.registry.desired import (
    cluster_of,
    cluster_registration,
    held_namespaces,
    instance_of,
    registrations,
)
from kairship.reconcile import Metadata
from kairship.resources import ClusterSpec, DriverName, InstanceSpec, RegistrationStatus, SecretReference

INSTANCE = ObservedInstance(
    metadata=Metadata(name="one", uid="uid-one"), spec=InstanceSpec(driver=DriverName.LOCAL, alias="First")
)


def test_namespaces_that_a_workspace_holds_of_this_very_instance() -> None:
    ours = registrations(INSTANCE, (), {})["kairship.instance.one"]
    status = RegistrationStatus(namespaces=("shop",))
    assert held_namespaces(ours, status, "uid-one") == {"shop"}
    assert held_namespaces(ours, status, "uid-of-a-later-one") == frozenset()
    assert held_namespaces(ours, RegistrationStatus(), "uid-one") == frozenset()


def test_an_instance_and_the_namespaces_that_exist() -> None:
    found = registrations(INSTANCE, {"shop", "not-yet"}, {"shop": "uid-shop", "default": "uid-default"})
    assert list(found) == ["kairship.instance.one", "kairship.namespace.one.shop"]
    assert found["kairship.instance.one"].display_name == "First"
    assert [each.uid for each in found.values()] == ["uid-one", "uid-shop"]
    assert {instance_of(each) for each in found.values()} == {"one"}


def test_registrations_of_others_are_not_ours() -> None:
    ours = registrations(INSTANCE, (), {})["kairship.instance.one"]
    assert instance_of(msgspec.structs.replace(ours, product="other")) is None
    assert instance_of(msgspec.structs.replace(ours, resource_type="cluster")) is None


def test_a_cluster_is_registered_unless_it_stands_for_an_instance() -> None:
    def cluster(name: str, *, virtual: bool) -> RegisteredCluster:
        spec = ClusterSpec(credentials=SecretReference(name="c"), alias="Berlin", virtual=virtual)
        return RegisteredCluster(metadata=Metadata(name=name, uid="uid-berlin"), spec=spec)

    [(name, found)] = cluster_registration(cluster("berlin", virtual=False)).items()
    assert (name, found.uid, found.display_name) == ("kpanda.cluster.berlin", "uid-berlin", "Berlin")
    assert (cluster_of(found), instance_of(found)) == ("berlin", None)
    assert cluster_of(registrations(INSTANCE, (), {})["kairship.instance.one"]) is None
    assert cluster_registration(cluster("k-one", virtual=True)) == {}
