"""The files in `deploy/crds` are up to date and consistent."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kairship.resources import DEFINITIONS, Definition, admission_policies, crds
from kairship.resources.__main__ import main
from kairship.resources.install.manifests import files
from kairship.resources.schema.structural import Schema, structural_schema

COMMITTED = Path(__file__).parents[3] / "deploy" / "crds"

by_kind = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)


def test_committed_files_are_up_to_date() -> None:
    """If this fails, run `make gen`."""
    assert {path.name: path.read_text(encoding="utf-8") for path in COMMITTED.iterdir()} == files()


def test_command_writes_the_files(tmp_path: Path) -> None:
    main(tmp_path / "new")
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "new").iterdir()} == files()


def test_files_hold_the_manifests_in_an_order_that_can_be_applied() -> None:
    written: list[Any] = []
    for name, content in sorted(files().items()):
        if name.endswith(".yaml"):
            written += yaml.safe_load_all(content)
    is_crd = [manifest["kind"] == "CustomResourceDefinition" for manifest in written]
    assert is_crd == sorted(is_crd, reverse=True)  # the parameters of policies are of our kinds
    by_name = [(manifest["kind"], manifest["metadata"]["name"], manifest) for manifest in written]
    expected = [(m["kind"], m["metadata"]["name"], m) for m in (*crds(), *admission_policies())]
    assert sorted(by_name, key=lambda each: each[:2]) == sorted(expected, key=lambda each: each[:2])


def test_names_are_unique() -> None:
    names = [name for each in DEFINITIONS for name in (each.plural, each.singular, *each.short_names)]
    assert len(set(names)) == len(names)


def lookup(schema: Schema, path: str) -> Schema:
    for name in path.removeprefix(".").split("."):
        schema = schema["properties"][name]
    return schema


@by_kind
def test_columns_show_fields_that_exist(definition: Definition) -> None:
    schema = structural_schema(definition.resource)
    for column in definition.columns:
        condition = re.fullmatch(r'\.status\.conditions\[\?\(@\.type=="(\w+)"\)\]\.(status|reason)', column.path)
        if condition:
            assert condition[1] in set(definition.conditions), column.name
        elif column.path != ".metadata.creationTimestamp":
            found = lookup(schema, column.path)
            # kubectl shows a date as an age, and a future date as <invalid>.
            past = found.get("format") == "date-time" and not column.path.endswith("expiresAt")
            assert column.type == ("date" if past else found["type"]), column.name


@by_kind
def test_lists_can_be_selected_by_fields_that_exist(definition: Definition) -> None:
    schema = structural_schema(definition.resource)
    for path in definition.selectable:
        assert lookup(schema, path)["type"] in {"string", "boolean", "integer"}


@by_kind
def test_reference_names_every_condition_and_reason(definition: Definition) -> None:
    section = files()["README.md"].split(f"### {definition.kind}\n")[1].split("###")[0]
    for kind in definition.conditions:
        assert f"| **{kind.value}** |" in section
        for reason in kind.reasons:
            assert f"| {reason.value} | {reason.meaning} |" in section
