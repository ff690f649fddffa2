"""Turns the definition of a kind into a CustomResourceDefinition."""

from typing import Any

from kairship.resources.schema.definition import VERSION, Column, Definition
from kairship.resources.schema.structural import structural_schema

# `kubectl get kairship` lists the objects of all our kinds.
CATEGORY = "kairship"

LABELS = {"app.kubernetes.io/part-of": "kairship"}


def custom_resource_definition(definition: Definition) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {"openAPIV3Schema": structural_schema(definition.resource)},
    }
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": definition.name, "labels": LABELS},
        "spec": {
            "group": definition.group,
            "scope": "Cluster",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.singular,
                "shortNames": list(definition.short_names),
                "categories": [CATEGORY],
            },
            "versions": [version],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path, "description": column.description}
    return shown | ({"priority": 1} if column.wide else {})
