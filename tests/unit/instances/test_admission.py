"""The admission policies as data. A real API server shows what they refuse (`tests/security/test_mechanisms.py`)."""

import re

import pytest

from kairship.instances import admission
from kairship.instances.admission.people import MOST_SELECTORS, guess_plural

CHECKS_OF_ONE_EXPRESSION, CHECKS_OF_ONE_POLICY = 2, 28
"""As many questions to the authorizer as Kubernetes' bounds on the cost of expressions allow."""


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("ConfigMap", "configmaps"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gatewaies"),
    ],
)
def test_plurals_are_guessed_as_kubernetes_does(kind: str, plural: str) -> None:
    assert guess_plural(kind) == plural


def test_kinds_with_another_plural_are_written_into_the_policies() -> None:
    plurals = admission.irregular_plurals(
        [("gateway.networking.k8s.io", "Gateway", "gateways"), ("example.org", "Widget", "widgets")]
    )
    assert plurals == {"/Endpoints": "endpoints", "gateway.networking.k8s.io/Gateway": "gateways"}
    asking = [manifest for _, manifest in admission.manifests(plurals) if "'gateways'" in str(manifest)]
    assert {manifest["metadata"]["name"] for manifest in asking} == {
        policy.name for policy in admission.POLICIES if policy.asks_for_rights
    }


@pytest.mark.parametrize("name", ["x' : 'secrets", "x'}", "x\n", ""])
def test_a_name_that_is_none_does_not_become_part_of_an_expression(name: str) -> None:
    assert admission.irregular_plurals([("example.org", name, "sheep"), ("example.org", "Sheep", name)]) == {
        "/Endpoints": "endpoints"
    }


def test_kinds_are_not_more_than_an_expression_can_hold() -> None:
    plurals = admission.irregular_plurals(("example.org", f"Sheep{n}", f"flock{n}") for n in range(5000))
    assert max(len(str(manifest)) for _, manifest in admission.manifests(plurals)) < 200_000


def test_no_policy_asks_more_often_than_the_api_server_allows() -> None:
    for policy in admission.POLICIES:
        asked = [len(re.findall(r"\.check\(", each.expression)) for each in policy.validations]
        assert max(asked) <= CHECKS_OF_ONE_EXPRESSION
        assert sum(asked) <= CHECKS_OF_ONE_POLICY
        assert sum(each.count(".check(") for each in policy.conditions.values()) <= 7
    assert MOST_SELECTORS <= CHECKS_OF_ONE_POLICY


def test_every_policy_comes_before_its_binding_and_the_probe_comes_last() -> None:
    names = [(resource.kind, manifest["metadata"]["name"]) for resource, manifest in admission.manifests()]
    assert len(names) == len(set(names)) == 2 * len(admission.POLICIES)
    for position, (kind, name) in enumerate(names):
        assert kind == ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")[position % 2]
        assert name == names[position // 2 * 2][1]
    assert names[-1][1] == "kairship-admission-probe"
