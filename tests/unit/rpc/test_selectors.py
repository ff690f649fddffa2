"""Selectors in kubectl's syntax."""

import pytest

from kairship.rpc.errors import InvalidArgument
from kairship.rpc.selectors import field_selector, label_selector

LABELS = {"app": "web", "tier": "front", "example.com/a": ""}


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("missing!=x", True),
        ("app=web,tier!=front", False),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("missing notin (a)", True),
        ("app", True),
        ("!app", False),
        ("example.com/a", True),
        ("example.com/a=", True),
        ("app in (web),tier in (back,front)", True),
    ],
)
def test_labels_are_selected_as_kubectl_does(selector: str, holds: bool) -> None:
    assert label_selector(selector)(LABELS) is holds


@pytest.mark.parametrize("selector", ["a in", "a in (", "=b", "a=b=c", "a>1", "a b", "app in (web", "()", "a,,=b"])
def test_what_is_no_selector_is_refused(selector: str) -> None:
    with pytest.raises(InvalidArgument, match="labelSelector"):
        label_selector(selector)


def test_fields_are_selected() -> None:
    fields = {"metadata.name": lambda item: item}
    assert field_selector("metadata.name=web", fields)("web")
    assert not field_selector("metadata.name!=web", fields)("web")
    with pytest.raises(InvalidArgument, match="is none of metadata"):
        field_selector("spec.x=1", fields)
    with pytest.raises(InvalidArgument, match="name=value"):
        field_selector("metadata.name", fields)
