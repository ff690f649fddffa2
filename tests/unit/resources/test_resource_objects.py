"""Objects in JSON: which fields are sent, left out and accepted."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from kairship.resources import (
    Cluster,
    DriverName,
    Instance,
    InstanceSpec,
    InstanceState,
    InstanceStatus,
    Membership,
    MembershipSpec,
    ObjectMeta,
    OnRemove,
    ReadyCount,
    virtual_cluster_name,
)
from kairship.resources.instance_status import ClusterCount, Summary, Totals, Upgrade

NOON = dt.datetime(2025, 6, 1, 12, 0, 0, tzinfo=dt.UTC)
NOTHING = Totals(nodes=ReadyCount(total=0, ready=0))


def on_the_wire(obj: msgspec.Struct) -> Any:
    return msgspec.json.decode(msgspec.json.encode(obj))


def test_only_what_was_set_is_sent() -> None:
    instance = Instance(metadata=ObjectMeta(name="demo"), spec=InstanceSpec(driver=DriverName.LOCAL, alias="Demo"))
    assert on_the_wire(instance) == {
        "apiVersion": "kairship.io/v1alpha1",
        "kind": "Instance",
        "metadata": {"name": "demo"},
        "spec": {"driver": "local", "alias": "Demo"},
    }


def test_names_on_the_wire_are_those_of_kubernetes() -> None:
    status = InstanceStatus(
        karmada_version="v1.18.1",
        upgrade=Upgrade(from_version="v1.18.1", to_version="v1.18.2", started_at=NOON),
    )
    assert on_the_wire(status) == {
        "karmadaVersion": "v1.18.1",
        "upgrade": {"from": "v1.18.1", "to": "v1.18.2", "startedAt": "2025-06-01T12:00:00Z"},
    }


def test_counts_of_zero_are_sent() -> None:
    summary = Summary(
        observed_at=NOON, clusters=ClusterCount(total=0, ready=0, stale=0), current=NOTHING, stale=NOTHING
    )
    assert on_the_wire(summary)["clusters"] == {"total": 0, "ready": 0, "stale": 0}


def test_reply_of_an_api_server_is_understood() -> None:
    reply = b"""{
      "apiVersion": "kairship.io/v1alpha1", "kind": "Instance", "fieldOfTomorrow": {"a": [1]},
      "metadata": {"name": "demo", "uid": "86347f45", "resourceVersion": "231", "generation": 2,
        "creationTimestamp": "2025-06-01T12:00:00Z", "deletionTimestamp": "2025-06-01T12:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["kairship.io/instance"], "managedFields": [{"manager": "x"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": "1", "controller": true}]},
      "spec": {"driver": "local", "settingOfTomorrow": 1, "failover": {"enabled": true, "new": "x"}},
      "status": {"state": "RUNNING", "conditions": [{"type": "FutureType", "status": "True", "reason": "New",
        "lastTransitionTime": "2025-06-01T12:00:00Z"}]}}"""
    instance = msgspec.json.decode(reply, type=Instance)
    assert instance.name == "demo"
    assert instance.deleting
    assert instance.metadata.creation_timestamp == NOON
    assert instance.metadata.finalizers == ("kairship.io/instance",)
    assert instance.metadata.owner_references[0].controller
    assert instance.spec.failover.enabled
    assert instance.spec.failover.graceful_eviction_timeout_seconds == 600
    assert instance.status.state is InstanceState.RUNNING
    assert instance.status.conditions[0].type == "FutureType"


def test_object_of_another_kind_is_not_taken_for_this_one() -> None:
    membership = Membership(
        metadata=ObjectMeta(name="east"), spec=MembershipSpec(instance="demo", on_remove=OnRemove.KEEP)
    )
    assert msgspec.json.decode(msgspec.json.encode(membership), type=Membership) == membership
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(membership), type=Cluster)


def test_virtual_cluster_is_named_after_its_instance() -> None:
    assert virtual_cluster_name("demo") == "k-demo"
