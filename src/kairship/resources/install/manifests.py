"""The manifests that the global cluster needs before our kinds can be used, as objects and as files."""

from collections.abc import Iterable
from typing import Any

import yaml

from kairship.resources.access_binding import ACCESS_BINDINGS
from kairship.resources.cluster import CLUSTERS
from kairship.resources.install.admission_policies import REFUSALS, policy, policy_binding
from kairship.resources.instance import INSTANCES
from kairship.resources.membership import MEMBERSHIPS
from kairship.resources.product import PRODUCTS
from kairship.resources.registration import REGISTRATIONS
from kairship.resources.schema.crd import custom_resource_definition
from kairship.resources.schema.definition import Definition
from kairship.resources.schema.documentation import class_doc

Manifest = dict[str, Any]

DEFINITIONS = (INSTANCES, MEMBERSHIPS, CLUSTERS, REGISTRATIONS, PRODUCTS, ACCESS_BINDINGS)

_GENERATED = "Generated from src/kairship/resources by `make gen`; change it there."


def crds() -> list[Manifest]:
    return [custom_resource_definition(definition) for definition in DEFINITIONS]


def admission_policies() -> list[Manifest]:
    """The admission policies. Apply them when our kinds are served, because their parameters are of these kinds."""
    return [manifest for refusal in REFUSALS for manifest in (policy(refusal), policy_binding(refusal))]


def files() -> dict[str, str]:
    """The content of `deploy/crds` by file name. The files can be applied in this order."""
    content = {
        f"{definition.group}_{definition.plural}.yaml": _yaml([custom_resource_definition(definition)])
        for definition in DEFINITIONS
    }
    content["validating-admission-policies.yaml"] = _yaml(admission_policies())
    content["README.md"] = _reference()
    return content


def _yaml(manifests: Iterable[Manifest]) -> str:
    documents = [
        yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120) for manifest in manifests
    ]
    return f"# {_GENERATED}\n" + "---\n".join(documents)


class _Dumper(yaml.SafeDumper):
    """Writes YAML for people: repeated parts in full instead of aliases, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def _reference() -> str:
    kinds = ["| kind | group | short | what it is |", "|---|---|---|---|"]
    for definition in DEFINITIONS:
        summary = class_doc(definition.resource)
        kinds.append(f"| {definition.kind} | {definition.group} | {', '.join(definition.short_names)} | {summary} |")
    sections = [
        "# Custom resources",
        f"<!-- {_GENERATED} -->",
        "`kubectl get kairship` lists everything, `kubectl explain instance.spec` describes every field.",
        "\n".join(kinds),
        "## Conditions",
        "A condition whose `observedGeneration` is lower than the object's generation is out of date.",
    ]
    for definition in DEFINITIONS:
        sections += [f"### {definition.kind}", _conditions(definition)]
    return "\n\n".join(sections) + "\n"


def _conditions(definition: Definition) -> str:
    rows = ["| type | reason | meaning | written by |", "|---|---|---|---|"]
    for kind in definition.conditions:
        rows.append(f"| **{kind.value}** | | {kind.meaning} | {kind.writer.meaning} |")
        rows += [f"| | {reason.value} | {reason.meaning} | |" for reason in kind.reasons]
    return "\n".join(rows)
