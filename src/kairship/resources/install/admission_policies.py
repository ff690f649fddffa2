"""ValidatingAdmissionPolicies of the global cluster, for refusals that depend on other objects.

Because the API server enforces them, they apply to kubectl as well. A policy cannot list objects, but it can have
parameters, and a policy binding that selects all objects of a kind as parameters makes the API server evaluate the
policy once for each of them: the policy must hold for every one. So the memberships themselves are the parameters of
"an instance with clusters cannot be deleted", and no counter has to be maintained.

The API server reads parameters through a watch of its own, which is milliseconds behind, and which does not exist yet
in the first seconds after the kinds were installed. A deletion at the very moment of a join can therefore be admitted.
For this case the instance's finalizer waits for memberships as well, and reports it. A policy that is created before
the kind of its parameters is served refuses everything until the API server checks again, within half a minute; so the
kinds are installed first.

These policies do not decide who may write. RBAC does: kinds and their status are separate resources, and only the
plane's own service accounts may write registrations, products, bindings or any status.
"""

from typing import Any

import msgspec

from kairship.resources.cluster import CLUSTERS
from kairship.resources.instance import INSTANCES
from kairship.resources.membership import MEMBERSHIPS
from kairship.resources.schema.crd import LABELS
from kairship.resources.schema.definition import VERSION, Definition

_API = "admissionregistration.k8s.io/v1"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on `subject` that is refused unless `unless` holds for every object of the kind `considering`.

    Both expressions are CEL; `params` is the object considered.
    """

    name: str
    operation: str
    subject: Definition
    considering: Definition
    unless: str
    message: str


REFUSALS = (
    Refusal(
        name="kairship-delete-instance-without-clusters",
        operation="DELETE",
        subject=INSTANCES,
        considering=MEMBERSHIPS,
        unless="params.spec.instance != oldObject.metadata.name",
        message="'instance ' + oldObject.metadata.name + ' has joined clusters, ' + params.metadata.name "
        "+ ' among them: remove them first (kubectl delete membership ' + params.metadata.name + ')'",
    ),
    Refusal(
        name="kairship-delete-cluster-outside-instances",
        operation="DELETE",
        subject=CLUSTERS,
        considering=MEMBERSHIPS,
        unless="params.metadata.name != oldObject.metadata.name",
        message="'cluster ' + oldObject.metadata.name + ' belongs to instance ' + params.spec.instance "
        "+ ': remove it from there first (kubectl delete membership ' + params.metadata.name + ')'",
    ),
    Refusal(
        name="kairship-join-instance-that-stays",
        operation="CREATE",
        subject=MEMBERSHIPS,
        considering=INSTANCES,
        unless="params.metadata.name != object.spec.instance || !has(params.metadata.deletionTimestamp)",
        message="'instance ' + object.spec.instance + ' is being deleted: no cluster can join it'",
    ),
)


def policy(refusal: Refusal) -> dict[str, Any]:
    """The ValidatingAdmissionPolicy of a refusal."""
    target = {
        "apiGroups": [refusal.subject.group],
        "apiVersions": [VERSION],
        "resources": [refusal.subject.plural],
        "operations": [refusal.operation],
        "scope": "Cluster",
    }
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": refusal.name, "labels": LABELS},
        "spec": {
            "failurePolicy": "Fail",
            "paramKind": {"apiVersion": refusal.considering.api_version, "kind": refusal.considering.kind},
            # Written in full, with the API server's defaults: this field is owned as a whole, and two installers that
            # send less than what is stored would be in conflict.
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [target],
            },
            "validations": [
                {"expression": refusal.unless, "messageExpression": refusal.message, "reason": "Forbidden"}
            ],
        },
    }


def policy_binding(refusal: Refusal) -> dict[str, Any]:
    """The binding that makes all objects of the considered kind its parameters. If there are none, nothing is
    refused."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": refusal.name, "labels": LABELS},
        "spec": {
            "policyName": refusal.name,
            "validationActions": ["Deny"],
            "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
        },
    }
