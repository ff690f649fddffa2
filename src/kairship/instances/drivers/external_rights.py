"""What the plane must be allowed to do in a Karmada that it adopts, and whether it is.

One table is both the question that is asked before an adoption and the ClusterRole that answers it with yes, so that an
owner can give the plane exactly what it needs. That is nearly everything, and the table says why: whoever may hand out
roles and act as others could give itself the rest.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from kairship.kube import Client, Object, kinds

READ = ("get", "list", "watch")
WRITE = (*READ, "create", "update", "patch", "delete")


class Right(msgspec.Struct, frozen=True):
    """Verbs on one resource, and what they are for. A subresource is written as in RBAC: `serviceaccounts/token`."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    purpose: str

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{', '.join(self.verbs)} {resource} ({self.purpose})"


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


async def missing_rights(client: Client) -> Sequence[Right]:
    """What the identity of `client` lacks. Asked one by one: only the server itself knows how it decides."""
    try:
        async with asyncio.TaskGroup() as tasks:
            answers = {
                (right, verb): tasks.create_task(_allowed(client, right, verb))
                for right in NEEDED
                for verb in right.verbs
            }
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures  # one server, one complaint
    lacking = []
    for right in NEEDED:
        refused = tuple(verb for verb in right.verbs if not answers[right, verb].result())
        if refused:
            lacking.append(msgspec.structs.replace(right, verbs=refused))
    return lacking


async def _allowed(client: Client, right: Right, verb: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {"group": right.group, "resource": resource, "subresource": subresource, "verb": verb}
    review = await client.create(kinds.SELF_SUBJECT_ACCESS_REVIEWS, {"spec": {"resourceAttributes": asked}})
    return bool(review["status"].get("allowed"))
