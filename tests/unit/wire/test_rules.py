"""The rules in the protos refuse invalid requests, and accept everything that clients of the contract send."""

from typing import Any

import protovalidate
import pytest
from protobuf import Message

from kairship.gen.kairship.apps.v1alpha1.deployment_pb import CreateDeploymentRequest, ListDeploymentsRequest
from kairship.gen.kairship.cluster.v1alpha1.membership_pb import JoinClustersRequest
from kairship.gen.kairship.core.v1alpha1.service_pb import ListServicesRequest
from kairship.gen.kairship.ghippo.v1alpha1.user_pb import GetUserRequest
from kairship.gen.kairship.ghippo.v1alpha1.workspace_pb import GetWorkspaceRequest
from kairship.gen.kairship.instance.v1alpha1.instance_pb import GetInstanceRequest
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import RestoreInstanceRequest, UpgradeInstanceRequest
from kairship.wire import methods, read


def violations(message: Message[Any]) -> list[tuple[str, str]]:
    found = (violation.proto for violation in protovalidate.collect_violations(message))
    return [(v.field.elements[0].field_name, v.rule_id) for v in found if v.field is not None]


def test_the_rules_of_every_request_can_be_evaluated() -> None:
    for method in methods().values():
        protovalidate.collect_violations(method.request())  # raises CompilationError if a rule is wrong


@pytest.mark.parametrize("name", ["a", "prod-1", "0", "a" * 63])
def test_a_label_is_accepted(name: str) -> None:
    assert violations(GetInstanceRequest(name=name)) == []


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", "a.b", "a" * 64, "a\n", "a\0", "é", "а", "..", "a/b", "*"]
)
def test_what_is_no_label_is_refused(name: str) -> None:
    assert violations(GetInstanceRequest(name=name)) == [("name", "string.label")]


@pytest.mark.parametrize("name", ["a.b", "web-7.example.com", "a" * 253])
def test_a_subdomain_is_accepted(name: str) -> None:
    assert violations(JoinClustersRequest(instance="prod", clusters=[name])) == []


@pytest.mark.parametrize("name", ["", "a..b", ".a", "a.", "a-.b", "a" * 254, "a\n", "*", "../x", "%2e"])
def test_what_is_no_subdomain_is_refused(name: str) -> None:
    assert violations(JoinClustersRequest(instance="prod", clusters=[name])) == [("clusters", "string.subdomain")]


@pytest.mark.parametrize("text", ["u-1", "a", "A.b_c:d@e", "a" * 128])
def test_an_identifier_is_accepted(text: str) -> None:
    assert violations(GetUserRequest(id=text)) == []


@pytest.mark.parametrize("text", ["", "-a", "a b", "a" * 129, "a\n", "a\0", "é", "../x", "a/b", "*"])
def test_what_is_no_identifier_is_refused(text: str) -> None:
    assert violations(GetUserRequest(id=text)) == [("id", "string.identifier")]


@pytest.mark.parametrize("text", ["", "-1", "x", "1 ", "1\n", "٣", "1" * 11, "1e3"])
def test_what_is_no_number_is_refused(text: str) -> None:
    assert violations(GetWorkspaceRequest(workspace=text)) == [("workspace", "string.number")]
    assert violations(GetWorkspaceRequest(workspace="7")) == []


@pytest.mark.parametrize(("page", "page_size"), [(0, 0), (1, -1), (3, 1000)])
def test_pages_that_clients_ask_for_are_accepted(page: int, page_size: int) -> None:
    assert violations(ListDeploymentsRequest(instance="a", namespace="b", page=page, page_size=page_size)) == []


def test_all_violations_are_told_at_once() -> None:
    request = ListDeploymentsRequest(instance="A", namespace="b", page=-1, page_size=-2)
    assert violations(request) == [("instance", "string.label"), ("page", "int32.gte"), ("page_size", "int32.gte")]


def test_a_number_that_is_no_enum_value_is_refused() -> None:
    text = b'{"instance": "a", "namespace": "b", "sortBy": 77, "type": [1, 99]}'
    request = read(ListServicesRequest, text, strict=True).message
    assert violations(request) == [("type", "enum.defined_only"), ("sort_by", "enum.defined_only")]


def test_a_manifest_must_be_there() -> None:
    assert violations(CreateDeploymentRequest(instance="a", namespace="b")) == [("data", "required")]


@pytest.mark.parametrize(
    ("version", "accepted"), [("v1.18.2", True), ("v1.19.0-rc.1", True), ("1.18", False), ("", False)]
)
def test_a_version_looks_like_one(version: str, accepted: bool) -> None:
    assert (violations(UpgradeInstanceRequest(name="a", version=version)) == []) is accepted


def test_a_restore_names_its_request() -> None:
    assert violations(RestoreInstanceRequest(instance="a", name="nightly")) == [("request", "string.pattern")]
    assert violations(RestoreInstanceRequest(instance="a", name="nightly", request="2026-01-02T03:04:05Z")) == []
