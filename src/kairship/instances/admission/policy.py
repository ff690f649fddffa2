"""A ValidatingAdmissionPolicy with its binding, as data."""

from collections.abc import Mapping
from typing import Any

import msgspec

from kairship.kube import Resource, kinds

LABEL = "kairship.io/admission"
"""The label of every admission policy that the plane writes into an instance."""

_API = "admissionregistration.k8s.io/v1"
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

Plurals = Mapping[str, str]
"""The resources of kinds whose plural Kubernetes would not guess from the kind: by `<group>/<Kind>`."""


class Validation(msgspec.Struct, frozen=True):
    """A CEL expression that must hold, and what the caller is told if it does not hold."""

    expression: str
    message: str
    detail: str = ""
    """A CEL expression for a message that names what is wrong in this very object; `message` stands in for it."""

    def manifest(self) -> dict[str, str]:
        detail = {"messageExpression": self.detail} if self.detail else {}
        return {"expression": self.expression, "message": self.message, **detail, "reason": "Forbidden"}


class Target(msgspec.Struct, frozen=True):
    """The kinds of an API group that a policy is about."""

    group: str
    resources: tuple[str, ...]
    operations: tuple[str, ...] = (CREATE, UPDATE)


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    targets: tuple[Target, ...]
    conditions: dict[str, str] = {}
    """By name: CEL expressions that must all hold for the policy to be evaluated."""
    variables: dict[str, str] = {}
    """By name: CEL expressions that validations use as `variables.<name>`."""
    validations: tuple[Validation, ...]
    asks_for_rights: bool = False
    """Whether it asks for rights on kinds that a person names. Then it has the variable `plurals`."""

    def manifests(self, plurals: Plurals) -> list[tuple[Resource, dict[str, Any]]]:
        """The policy and its binding. The policy comes first: a binding without its policy is an error."""
        return [
            (kinds.VALIDATING_ADMISSION_POLICIES, self._policy(plurals)),
            (kinds.VALIDATING_ADMISSION_POLICY_BINDINGS, self._binding()),
        ]

    def _policy(self, plurals: Plurals) -> dict[str, Any]:
        variables = ({"plurals": _cel_map(plurals)} if self.asks_for_rights else {}) | self.variables
        # Written in full, with the API server's defaults, so that a stored policy can be compared with this one.
        spec: dict[str, Any] = {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [
                    {
                        "apiGroups": [target.group],
                        "apiVersions": ["*"],
                        "resources": list(target.resources),
                        "operations": list(target.operations),
                        "scope": "*",
                    }
                    for target in self.targets
                ],
            },
            "validations": [each.manifest() for each in self.validations],
        }
        if self.conditions:
            spec["matchConditions"] = _named(self.conditions)
        if variables:
            spec["variables"] = _named(variables)
        return {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": self._metadata(), "spec": spec}

    def _binding(self) -> dict[str, Any]:
        return {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": self._metadata(),
            "spec": {"policyName": self.name, "validationActions": ["Deny"]},
        }

    def _metadata(self) -> dict[str, Any]:
        return {"name": self.name, "labels": {LABEL: "true"}}


def _cel_map(entries: Plurals) -> str:
    return "{" + ", ".join(f"'{key}': '{value}'" for key, value in sorted(entries.items())) + "}"


def _named(expressions: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]
