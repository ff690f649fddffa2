"""The rules for requests about clusters: names, credentials, labels and taints as Kubernetes and Karmada want them."""

import json
from typing import Any

import protovalidate
import pytest
from protobuf import Message

from kairship.gen.kairship.kpanda.v1alpha1.history_pb import GetClusterHistoryRequest
from kairship.gen.kairship.kpanda.v1alpha1.node_pb import UpdateNodeTaintsRequest
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    CreateClusterKubeconfigRequest,
    CreateClusterRequest,
    GetClusterRequest,
    UpdateClusterLabelsRequest,
    UpdateClusterRequest,
)
from kairship.gen.kairship.kpanda.v1alpha1.search_pb import SearchObjectsRequest
from kairship.wire import read

KUBECONFIG = {"kubeconfig": "apiVersion: v1"}


def broken(request: type[Message[Any]], **fields: Any) -> set[str]:
    """The rules that a request violates, read from JSON as a client sends it."""
    message = read(request, json.dumps(fields).encode(), strict=True).message
    return {violation.proto.rule_id for violation in protovalidate.collect_violations(message)}


def test_a_cluster_comes_with_a_name_and_a_credential() -> None:
    assert broken(CreateClusterRequest, name="frankfurt", credential=KUBECONFIG) == set()
    assert broken(CreateClusterRequest) == {"string.label", "required"}


@pytest.mark.parametrize(("name", "rule"), [("k-prod", "cluster_name"), ("a" * 49, "string.max_len")])
def test_a_name_that_no_real_cluster_can_have(name: str, rule: str) -> None:
    assert broken(CreateClusterRequest, name=name, credential=KUBECONFIG) == {rule}
    assert broken(GetClusterRequest, name=name) == set()


@pytest.mark.parametrize(
    ("credential", "rule"),
    [
        ({}, "required"),
        ({"kubeconfig": ""}, "string.min_len"),
        ({"kubeconfig": "x" * (1024 * 1024 + 1)}, "string.max_bytes"),
        ({"token": {"server": "https://a", "token": ""}}, "string.pattern"),
        ({"token": {"server": "https://a", "token": "t\nX-Header: 1"}}, "string.pattern"),
        ({"token": {"server": "https://a", "token": "t\n"}}, "string.pattern"),
    ],
)
def test_a_credential_that_cannot_be_one(credential: dict[str, Any], rule: str) -> None:
    assert broken(CreateClusterRequest, name="a", credential=credential) == {rule}


@pytest.mark.parametrize(
    ("server", "accepted"),
    [
        ("https://203.0.113.7:6443", True),
        ("https://[2001:db8::7]:6443/k8s/clusters/c-1", True),
        ("http://a:6443", False),
        ("https://user@a", False),
        ("https://a?b", False),
        ("https://a#b", False),
        ("https://a\n", False),
        ("https://a b", False),
        ("https://", False),
        ("file:///etc/passwd", False),
        ("https://" + "a" * 512, False),
    ],
)
def test_a_server_is_reached_by_https_and_nothing_else_is_said(server: str, accepted: bool) -> None:
    expected = set() if accepted else {"string.server"}
    assert broken(CreateClusterRequest, name="a", credential={"token": {"server": server, "token": "t"}}) == expected
    assert broken(UpdateClusterRequest, name="a", spec={"endpoint": server}) == expected
    assert broken(UpdateClusterRequest, name="a", spec={"endpoint": ""}) == set()


def test_a_token_is_a_credential_too() -> None:
    token = {"server": "https://203.0.113.7:6443/k8s", "token": "e30.e30.c2ln", "certificateAuthority": "-----BEGIN"}
    assert broken(CreateClusterRequest, name="a", credential={"token": token}) == set()


@pytest.mark.parametrize("key", ["a", "tier", "topology.kubernetes.io/zone", "A_b.c-1", "a" * 63, "x.y/" + "a" * 63])
def test_keys_of_labels_are_accepted(key: str) -> None:
    assert broken(UpdateClusterLabelsRequest, name="a", set={key: "v"}, remove=[key]) == set()


@pytest.mark.parametrize("key", ["", "-a", "a-", "a" * 64, "/a", "a/", "A.b/c", "a/b/c", "a b", "é", "a\n"])
def test_what_is_no_key_of_a_label_is_refused(key: str) -> None:
    assert broken(UpdateClusterLabelsRequest, name="a", set={key: "v"}) == {"string.label_key"}
    assert broken(UpdateClusterLabelsRequest, name="a", remove=[key]) == {"string.label_key"}


@pytest.mark.parametrize(("value", "accepted"), [("", True), ("A.b_c-1", True), ("-a", False), ("a" * 64, False)])
def test_values_of_labels(value: str, accepted: bool) -> None:
    assert (broken(UpdateClusterLabelsRequest, name="a", set={"k": value}) == set()) is accepted


@pytest.mark.parametrize(
    ("taint", "accepted"),
    [
        ({"key": "gpu", "effect": "NoSchedule"}, True),
        ({"key": "gpu"}, False),
        ({"effect": "NoExecute"}, False),
        ({"key": "gpu", "effect": "NoSchedule", "value": "a" * 64}, False),
    ],
)
def test_taints_have_a_key_and_an_effect(taint: dict[str, str], accepted: bool) -> None:
    expected = set() if accepted else {"taint"}
    assert broken(UpdateNodeTaintsRequest, cluster="a", name="n", set=[taint]) == expected
    assert broken(UpdateClusterRequest, name="a", spec={"taints": [taint]}) == expected


@pytest.mark.parametrize(("seconds", "accepted"), [(0, True), (600, True), (599, False), (-1, False)])
def test_a_kubeconfig_is_valid_for_ten_minutes_at_least(seconds: int, accepted: bool) -> None:
    assert (broken(CreateClusterKubeconfigRequest, name="a", expirationSeconds=seconds) == set()) is accepted


def test_a_span_of_time_goes_forward() -> None:
    assert broken(GetClusterHistoryRequest, cluster="a", span={"since": 10, "until": 20}) == set()
    assert broken(GetClusterHistoryRequest, cluster="a", span={"since": 10}) == set()
    assert broken(GetClusterHistoryRequest, cluster="a", span={"since": 20, "until": 20}) == {"span"}


def test_a_search_has_words_and_an_end() -> None:
    assert broken(SearchObjectsRequest, query="web nginx", kind=["deployments.apps"], limit=100) == set()
    assert broken(SearchObjectsRequest, limit=101) == {"string.min_len", "int32.gte_lte"}
    assert broken(SearchObjectsRequest, query="x" * 257) == {"string.max_len"}
