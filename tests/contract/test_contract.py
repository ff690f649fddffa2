"""Our API contains the whole published contract."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract.compare import Comparison, compare

HERE = Path(__file__).parent
CONTRACT = json.loads((HERE / "kairship-v0.23.0.json").read_text())
OURS = json.loads((HERE.parent.parent / "api/openapi/kairship.json").read_text())

BASE = "/apis/kairship.io/v1alpha1"


def counts(comparison: Comparison) -> list[tuple[int, int]]:
    return [(t.found, t.wanted) for t in (comparison.operations, comparison.parameters, comparison.fields)]


def test_nothing_of_the_contract_is_missing() -> None:
    comparison = compare(CONTRACT, OURS)
    assert comparison.shortfalls == []
    # The counts are checked too, so that a comparison that compares nothing cannot pass.
    assert str(comparison) == "operations 178/178, query parameters 392/392, fields 9441/9441"


def remove_operation(ours: Any) -> None:
    del ours["paths"][f"{BASE}/instances"]["get"]


def rename_operation(ours: Any) -> None:
    ours["paths"][f"{BASE}/instances"]["get"]["operationId"] = "Instances_List"


def remove_parameter(ours: Any) -> None:
    parameters = ours["paths"][f"{BASE}/instances"]["get"]["parameters"]
    parameters.remove(next(p for p in parameters if p["name"] == "pageSize"))


def retype_parameter(ours: Any) -> None:
    parameters = ours["paths"][f"{BASE}/instances"]["get"]["parameters"]
    next(p for p in parameters if p["name"] == "pageSize")["format"] = "int64"


def remove_value_of_parameter_items(ours: Any) -> None:
    parameters = ours["paths"][f"{BASE}/instances/{{instance}}/services"]["get"]["parameters"]
    next(p for p in parameters if p["name"] == "type")["items"]["enum"].remove("NodePort")


def remove_field(ours: Any) -> None:
    del ours["definitions"]["kairship.types.v1alpha1.Pagination"]["properties"]["total"]


def retype_field(ours: Any) -> None:
    ours["definitions"]["kairship.types.v1alpha1.ObjectMeta"]["properties"]["creationTimestamp"] = {"type": "string"}


def retype_items(ours: Any) -> None:
    items = {"type": "array", "items": {"type": "integer", "format": "int32"}}
    ours["definitions"]["kairship.types.v1alpha1.ObjectMeta"]["properties"]["finalizers"] = items


def remove_enum_value(ours: Any) -> None:
    ours["definitions"]["kairship.cluster.v1alpha1.ClusterPhase"]["enum"].remove("FAILED")


def remove_field_of_body(ours: Any) -> None:
    del ours["definitions"]["kairship.instance.v1alpha1.CreateInstanceRequest"]["properties"]["cluster"]


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (remove_operation, "GET /apis/kairship.io/v1alpha1/instances: there is no such operation"),
        (rename_operation, "is Instances_List and not Instance_ListInstances"),
        (remove_parameter, "query parameter pageSize: is missing"),
        (retype_parameter, "query parameter pageSize: is integer/int64 and not integer/int32"),
        (remove_value_of_parameter_items, "query parameter type: lacks the enum values NodePort"),
        (remove_field, "reply.pagination.total: is missing"),
        (retype_field, "metadata.creationTimestamp: is string and not string/int64"),
        (retype_items, "metadata.finalizers: items is integer/int32 and not string"),
        (remove_enum_value, "status.phase: lacks the enum values FAILED"),
        (remove_field_of_body, "body.cluster: is missing"),
    ],
)
def test_whatever_is_missing_is_noticed(break_it: Callable[[Any], None], complaint: str) -> None:
    broken = copy.deepcopy(OURS)
    break_it(broken)
    comparison = compare(CONTRACT, broken)
    assert any(complaint in shortfall for shortfall in comparison.shortfalls), comparison.shortfalls[:3]
    assert any(found < wanted for found, wanted in counts(comparison))
