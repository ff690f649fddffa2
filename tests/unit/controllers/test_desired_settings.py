"""The settings that a driver gets for a spec."""

import itertools

import pytest

from kairship.controllers.lifecycle.desired import asks_for_settings, first_version, settings_of
from kairship.resources import DriverName, InstanceSpec, is_older
from kairship.resources.instance import Descheduler, Failover, MetricsAdapter, Search

IN_ORDER = ["v1.9.9", "v1.18.0-rc.1", "v1.18.0", "v1.18.9", "v1.18.10", "v2.0.0"]


def spec(**fields: object) -> InstanceSpec:
    return InstanceSpec(driver=DriverName.LOCAL, **fields)  # type: ignore[arg-type]


def test_nothing_asked_for_is_nothing_set() -> None:
    settings = settings_of(spec(), version="v1.18.2", estimators={"m": b"secret"})
    assert (settings.failover, settings.descheduling, settings.search, settings.metrics_adapter) == (
        None,
        None,
        False,
        False,
    )
    assert settings.estimators == {}, "without a descheduler nobody needs them"
    assert not asks_for_settings(spec())


def test_every_setting_arrives() -> None:
    asked = spec(
        failover=Failover(
            enabled=True,
            cluster_monitor_period_seconds=1,
            cluster_monitor_grace_period_seconds=2,
            cluster_startup_grace_period_seconds=3,
            cluster_success_threshold_seconds=4,
            cluster_failure_threshold_seconds=5,
            graceful_eviction_timeout_seconds=6,
        ),
        descheduler=Descheduler(enabled=True, interval_seconds=7, unschedulable_threshold_seconds=8),
        metrics_adapter=MetricsAdapter(enabled=True),
        search=Search(enabled=True),
    )
    settings = settings_of(asked, version="v1.18.2", estimators={"m": b"kubeconfig"})
    failover, descheduling = settings.failover, settings.descheduling
    assert failover is not None
    assert descheduling is not None
    assert [getattr(failover, name) for name in failover.__struct_fields__] == [1, 2, 3, 4, 5, 6]
    assert (descheduling.interval, descheduling.unschedulable_threshold) == (7, 8)
    assert (settings.metrics_adapter, settings.search, settings.estimators) == (True, True, {"m": b"kubeconfig"})
    assert asks_for_settings(asked)


def test_the_first_version_is_the_one_asked_for_or_the_newest() -> None:
    offered = ["v1.18.2", "v1.18.1"]
    assert first_version(spec(), offered) == "v1.18.2"
    assert first_version(spec(version="v1.18.1"), offered) == "v1.18.1"
    assert first_version(spec(version="v1.17.0"), offered) is None
    assert first_version(spec(), []) is None


@pytest.mark.parametrize(("older", "newer"), list(itertools.combinations(IN_ORDER, 2)))
def test_versions_are_compared_by_number(older: str, newer: str) -> None:
    assert is_older(older, than=newer)
    assert not is_older(newer, than=older)
    assert not is_older(older, than=older)
