"""The Registrations of an instance."""

import msgspec

from kairship.controllers.global_cluster import ObservedInstance
from kairship.controllers.registry.desired import held_namespaces, instance_of, registrations
from kairship.reconcile import Metadata
from kairship.resources import DriverName, InstanceSpec, RegistrationStatus

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
