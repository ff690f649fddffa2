"""The capabilities of the `external` driver, and how it recognises releases."""

from pathlib import Path
from typing import Any

import pytest

from kairship.controlplane.karmada import KarmadaSettings
from kairship.instances.drivers import AdoptRefused, DesiredInstance, Driver, DriverError, ExternalDriver, run_steps
from kairship.instances.drivers.external.identity import api_level, level_of
from kairship.instances.drivers.external.required_rights import NEEDED
from kairship.kube import AddressRule

DESIRED = DesiredInstance("uid", "adopted", KarmadaSettings(version="v1.18.2"))


async def no_kubeconfig(uid: str) -> bytes:
    raise DriverError(f"the Secret of {uid} is gone")


async def broken_kubeconfig(uid: str) -> bytes:
    return b"[]"


async def test_what_is_its_owners_matter_is_refused() -> None:
    driver: Driver = ExternalDriver(no_kubeconfig, addresses=AddressRule())
    able = driver.capabilities
    assert not any(
        (able.can_configure, able.can_restart, able.can_upgrade, able.can_backup, able.can_destroy, able.owns_ca)
    )
    assert driver.versions() == ()
    assert await driver.roll_back(DESIRED) == []
    for refused in (
        driver.upgrade(DESIRED),
        driver.backup("uid", Path("anywhere")),
        driver.restore(DESIRED, Path("anywhere")),
    ):
        with pytest.raises(DriverError, match="is run by its owner"):
            await refused


async def test_an_instance_without_its_kubeconfig_can_be_let_go() -> None:
    driver = ExternalDriver(no_kubeconfig, addresses=AddressRule())
    await run_steps(await driver.delete("uid"))
    with pytest.raises(DriverError, match="the Secret of uid is gone"):
        await driver.connection("uid")
    with pytest.raises(AdoptRefused, match="not a kubeconfig"):
        await ExternalDriver(broken_kubeconfig, addresses=AddressRule()).connection("uid")


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("v1.14.9", None),
        ("v1.15.0", "v1.15"),
        ("v1.16.8", "v1.15"),
        ("v1.17.5", "v1.17"),
        ("v1.18.2", "v1.18"),
        ("v1.19.0-rc.0", "v1.18"),
        ("v2.0.0", "v1.18"),
    ],
)
def test_the_api_level_of_a_version(version: str, level: str | None) -> None:
    assert level_of(version) == level


def nested(path: str) -> dict[str, Any]:
    """A schema with this field in it; `[]` is a step into a list."""
    first, _, rest = path.partition(".")
    inner = nested(rest) if rest else {}
    return {"items": inner} if first == "[]" else {"properties": {first: inner}}


@pytest.mark.parametrize(
    ("field", "level"),
    [
        ("failover.application", None),
        ("failover.cluster", "v1.15"),
        ("placement.clusterAffinities.[].affinityName", None),
        ("placement.workloadAffinity", "v1.17"),
        ("placement.clusterAffinities.[].overflowAffinities", "v1.18"),
    ],
)
def test_the_api_level_of_a_definition(field: str, level: str | None) -> None:
    version = {"served": True, "schema": {"openAPIV3Schema": nested(f"spec.{field}")}}
    assert api_level({"spec": {"versions": [version]}}) == level


def test_the_required_permissions_are_named_one_by_one() -> None:
    assert not any("*" in part for right in NEEDED for part in (right.group, right.resource, *right.verbs))
