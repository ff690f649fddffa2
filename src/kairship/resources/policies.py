"""Refusals that depend on other objects: ValidatingAdmissionPolicies of the global cluster, so kubectl meets them too.

A policy cannot list objects, but it can have parameters, and a binding that selects all objects of a kind as parameters
makes the API server evaluate the policy once for each of them: every one must agree. So the memberships themselves are
the parameters of "an instance with clusters cannot be deleted". There is no counter that somebody has to maintain.

The API server sees parameters through a watch of its own, milliseconds behind, and for the first seconds after the
kinds were installed not at all. A deletion in the very instant of a join can therefore slip through: the instance's
finalizer waits for memberships as well, and says so. A policy that comes before its kind of parameter is served refuses
everything until the API server looks again, within half a minute: so the kinds come first.

Who may write what is not decided here: kinds and their status are separate resources to RBAC, which is enough. Nobody
but the plane's own service accounts is given a right to write registrations, products, bindings or any status.
"""

from typing import Any

import msgspec

from .cluster import CLUSTERS
from .crd import LABELS
from .definition import VERSION, Definition
from .instance import INSTANCES
from .membership import MEMBERSHIPS

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
    """What is refused."""
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
            # Written out in full, as the API server stores it: this part is owned as a whole, and two installers
            # that send less than what is stored would be in conflict.
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
    """That it is refused, in view of all objects of the kind considered. If there are none, nothing is."""
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
