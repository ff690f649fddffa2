"""What is registered with global management."""

import msgspec
from support.bindings import bind, on

from kairship.access import Binding, Role
from kairship.controllers.global_cluster import ObservedInstance
from kairship.controllers.registry.wanted import held_namespaces, instance_of, registrations
from kairship.reconcile import Metadata
from kairship.resources import DriverName, InstanceSpec
from kairship.resources.access_binding import Origin, OriginKind

INSTANCE = ObservedInstance(
    metadata=Metadata(name="one", uid="uid-one"), spec=InstanceSpec(driver=DriverName.LOCAL, alias="First")
)


def by_workspace(binding: Binding) -> Binding:
    binding.spec.origin = Origin(kind=OriginKind.WORKSPACE, id="7")
    return binding


def test_namespaces_that_a_workspace_holds() -> None:
    bindings = [
        by_workspace(bind("ann", Role.VIEWER, on("one", "shop"))),
        by_workspace(bind("ben", Role.VIEWER, on("one", "shop"))),
        by_workspace(bind("ann", Role.VIEWER, on("one", "gone"), revoked=True)),
        by_workspace(bind("ann", Role.VIEWER, on("two", "other"))),
        by_workspace(bind("ann", Role.VIEWER, on("one"))),
        bind("ann", Role.VIEWER, on("one", "granted-directly")),
    ]
    assert held_namespaces(bindings, "uid-one") == {"shop"}


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
