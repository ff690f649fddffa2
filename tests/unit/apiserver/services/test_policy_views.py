"""The filter of policies by what they select, and their views."""

from typing import Any

import pytest

from kairship.apiserver.services.kinds.policies import OVERRIDE_POLICIES, selecting
from kairship.apiserver.services.resources.kind import NO_TARGET_CLUSTERS
from kairship.gen.kairship.policy.v1alpha1.override_pb import OverridePolicy
from kairship.gen.kairship.policy.v1alpha1.propagation_pb import ListPropagationPoliciesRequest

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ALL = {"apiVersion": "apps/v1", "kind": "Deployment"}


@pytest.mark.parametrize(
    ("selectors", "request_of", "holds"),
    [
        ([WEB], {"kind": "Deployment"}, True),
        ([WEB], {"kind": "Deployment", "kind_name": "web"}, True),
        ([WEB], {"kind": "Deployment", "kind_name": "db"}, False),
        ([ALL], {"kind": "Deployment", "kind_name": "db"}, True),
        ([WEB, ALL], {"kind": "Deployment", "api_version": "apps/v2"}, False),
        ([WEB], {"kind": "Job"}, False),
        ([], {"kind": "Job"}, True),
        (None, {"kind": "Job"}, True),
    ],
)
def test_policies_that_select_an_object(selectors: Any, request_of: dict[str, str], holds: bool) -> None:
    selects = selecting(ListPropagationPoliciesRequest(**request_of))  # type: ignore[arg-type]
    assert selects is not None
    assert selects({"spec": {"resourceSelectors": selectors}}) is holds


def test_without_a_kind_policies_are_not_filtered() -> None:
    assert selecting(ListPropagationPoliciesRequest(kind_name="web")) is None


@pytest.mark.parametrize(("value", "raw"), [(3, b"3"), ("x", b'"x"'), (None, b"null"), ({"a": [1]}, b'{"a":[1]}')])
def test_the_value_of_an_override_is_any_json(value: Any, raw: bytes) -> None:
    overriders = {"plaintext": [{"path": "/spec/replicas", "operator": "replace", "value": value}]}
    shown = OVERRIDE_POLICIES.view({"spec": {"overrideRules": [{"overriders": overriders}]}}, NO_TARGET_CLUSTERS)
    assert isinstance(shown, OverridePolicy)
    assert shown.spec is not None
    [rule] = shown.spec.override_rules
    assert rule.overriders is not None
    [override] = rule.overriders.plaintext
    assert override.value is not None
    assert override.value.raw == raw
