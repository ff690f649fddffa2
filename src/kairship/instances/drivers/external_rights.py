"""What the plane must be allowed to do in a Karmada that it adopts.

One table is both the question that is asked before an adoption and the ClusterRole that answers it with yes, so that an
owner can give the plane exactly what it needs. That is nearly everything, and the table says why: whoever may hand out
roles and act as others could give itself the rest.
"""

from kairship.instances.rights import READ, WRITE, Right
from kairship.kube import Object

_RBAC = "rbac.authorization.k8s.io"

NEEDED = (
    Right("cluster.karmada.io", "clusters", WRITE, "joining and removing clusters"),
    Right("", "namespaces", WRITE, "joining and removing clusters"),
    Right("", "secrets", WRITE, "the credentials of joined clusters"),
    Right("", "configmaps", ("get", "create", "delete"), "marking the Karmada as adopted"),
    Right("work.karmada.io", "works", WRITE, "roles inside joined clusters"),
    Right("work.karmada.io", "resourcebindings", READ, "showing where workloads are"),
    Right("work.karmada.io", "clusterresourcebindings", READ, "showing where workloads are"),
    Right("policy.karmada.io", "propagationpolicies", READ, "statistics"),
    Right("policy.karmada.io", "clusterpropagationpolicies", READ, "statistics"),
    Right("policy.karmada.io", "overridepolicies", READ, "statistics"),
    Right("policy.karmada.io", "clusteroverridepolicies", READ, "statistics"),
    Right("apiextensions.k8s.io", "customresourcedefinitions", READ, "knowing its version and kinds"),
    Right("apiregistration.k8s.io", "apiservices", READ, "the health of its components"),
    Right("coordination.k8s.io", "leases", READ, "the health of its components"),
    Right("", "serviceaccounts", WRITE, "the identity that reads for the index"),
    Right("", "serviceaccounts/token", ("create",), "the identity that reads for the index"),
    Right("", "users", ("impersonate",), "acting as the person who asked"),
    Right("", "groups", ("impersonate",), "acting as the person who asked"),
    Right(_RBAC, "clusterroles", (*WRITE, "bind", "escalate"), "roles of people"),
    Right(_RBAC, "clusterrolebindings", WRITE, "roles of people"),
    Right(_RBAC, "roles", (*WRITE, "bind", "escalate"), "roles of people"),
    Right(_RBAC, "rolebindings", WRITE, "roles of people"),
)


def cluster_role(name: str) -> Object:
    """A role that is enough, for an owner who does not want to give more."""
    rules = [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)} for right in NEEDED
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
