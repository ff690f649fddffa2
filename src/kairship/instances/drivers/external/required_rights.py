"""The permissions that the plane needs in a Karmada that it adopts.

They are checked before an adoption. They are nearly everything, and the table says why: an identity that may bind roles
and impersonate users could grant itself the rest.
"""

from kairship.instances.access_review import READ, WRITE, Right

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
    Right("admissionregistration.k8s.io", "validatingadmissionpolicies", WRITE, "holding people to their rights"),
    Right("admissionregistration.k8s.io", "validatingadmissionpolicybindings", WRITE, "holding people to their rights"),
    Right("coordination.k8s.io", "leases", READ, "the health of its components"),
    Right("", "serviceaccounts", WRITE, "the identity that reads for the index"),
    Right("", "serviceaccounts/token", ("create",), "the identity that reads for the index"),
    Right("", "users", ("impersonate",), "impersonating the user who made a request"),
    Right("", "groups", ("impersonate",), "impersonating the user who made a request"),
    Right(_RBAC, "clusterroles", (*WRITE, "bind", "escalate"), "roles of people"),
    Right(_RBAC, "clusterrolebindings", WRITE, "roles of people"),
    Right(_RBAC, "roles", (*WRITE, "bind", "escalate"), "roles of people"),
    Right(_RBAC, "rolebindings", WRITE, "roles of people"),
)
