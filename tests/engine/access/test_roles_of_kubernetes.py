"""Compares the roles on a namespace with Kubernetes' own `view`, `edit` and `admin`, as a real server has them.

Every difference is written here with its reason, and so is every kind that the plane keeps closed. Rules about verbs
that the server does not serve for a resource are left out.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Any, NamedTuple

import msgspec
import pytest

from kairship.access import Attributes, Role, permission_for, permissions_of
from kairship.access.catalogue.kinds import BY_RESOURCE, KARMADA
from kairship.controllers.access.rules import namespace_rules
from kairship.embedded import EmbeddedPlane
from kairship.kube import Client, kinds

ROLES = {"view": Role.VIEWER, "edit": Role.EDITOR, "admin": Role.ADMIN}
READ = "get list watch"


class Difference(NamedTuple):
    roles: str
    resource: str
    """Group and plural."""
    verbs: str
    reason: str


MORE = (
    Difference("view", "coordination.k8s.io:leases", READ, "Viewers see everything but the values of Secrets"),
    Difference("view edit admin", ":podtemplates", READ, "Viewers see everything but the values of Secrets"),
    Difference(
        "view edit admin",
        "storage.k8s.io:csistoragecapacities",
        READ,
        "Viewers see everything but the values of Secrets",
    ),
    Difference("edit admin", ":pods/ephemeralcontainers", "patch update", "kubectl debug is no more than kubectl exec"),
)
"""What the plane's roles have and those of Kubernetes do not."""

LESS = (
    Difference(
        "view edit admin",
        ":namespaces",
        "list watch",
        "a RoleBinding cannot grant this; whoever holds rights on namespaces sees those alone",
    ),
    Difference(
        "view edit admin", ":namespaces/status", "get", "the namespace itself, which may be read, has its status"
    ),
    Difference(
        "edit admin",
        ":pods/proxy",
        "create delete get patch update",
        "it sends requests to any address that a Pod says it has",
    ),
    Difference(
        "edit admin",
        ":services/proxy",
        "create delete get patch update",
        "it sends requests to any address that an endpoint says it has",
    ),
    Difference(
        "edit admin",
        ":serviceaccounts/token",
        "create",
        "a token of the instance would outlive the binding, and no audit of the plane would see it",
    ),
    Difference("edit admin", ":serviceaccounts", "impersonate", "nobody acts as somebody else through the plane"),
    Difference(
        "admin",
        "authorization.k8s.io:localsubjectaccessreviews",
        "create",
        "the rights of others are for global management to show",
    ),
)
"""What the roles of Kubernetes have and the plane's do not."""

CLOSED = {
    ":bindings": "schedulers write these, and nobody reads them",
    ":componentstatuses": "they are out of use, and describe the processes of the server",
    "authentication.k8s.io:tokenreviews": "they tell whether a stolen token is valid",
    "authorization.k8s.io:localsubjectaccessreviews": "the rights of others are for global management to show",
    "authorization.k8s.io:subjectaccessreviews": "the rights of others are for global management to show",
    "certificates.k8s.io:certificatesigningrequests": "a certificate gives an identity that no binding ends",
}
"""The kinds that the plane opens to nobody."""


class Served(NamedTuple):
    """A resource, or a subresource, as discovery has it."""

    namespaced: bool
    verbs: frozenset[str]


@pytest.fixture
async def instance(plane: EmbeddedPlane) -> AsyncIterator[Client]:
    async with Client(await plane.instance_connection()) as client:
        yield client


async def read(instance: Client, path: str) -> Any:
    reply = await instance.request("GET", path)
    assert reply.status == 200, reply.body
    return msgspec.json.decode(reply.body)


async def served_by(instance: Client) -> dict[str, Served]:
    """Everything that the server serves, in any version, by group and plural."""
    groups = (await read(instance, "/apis"))["groups"]
    versions = [(each["name"], f"/apis/{version['groupVersion']}") for each in groups for version in each["versions"]]
    found = {}
    for group, path in (("", "/api/v1"), *versions):
        for resource in (await read(instance, path))["resources"]:
            found[f"{group}:{resource['name']}"] = Served(resource["namespaced"], frozenset(resource["verbs"]))
    return found


def verbs_of(rules: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    return {
        (f"{group}:{resource}", verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def written(differences: Iterable[Difference], role: str) -> set[tuple[str, str]]:
    return {(each.resource, verb) for each in differences if role in each.roles.split() for verb in each.verbs.split()}


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_on_a_namespace_is_that_of_kubernetes(instance: Client, role: str) -> None:
    served = await served_by(instance)

    def compared(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Without Karmada's kinds, of which Kubernetes knows nothing, and without requests that nobody can make."""
        return {
            (resource, verb)
            for resource, verb in found
            if resource in served
            and not (resource.partition(":")[0].endswith(KARMADA) or resource.startswith("multicluster.x-k8s.io:"))
            and verb in served[resource].verbs | {"impersonate", "bind", "escalate"}
        }

    ours = compared(verbs_of(namespace_rules(permissions_of(ROLES[role]), ())))
    theirs = compared(verbs_of((await instance.get(kinds.CLUSTER_ROLES, role))["rules"]))
    assert ours - theirs == written(MORE, role)
    assert theirs - ours == written(LESS, role)


async def test_every_kind_is_open_or_closed_for_a_reason(instance: Client) -> None:
    """The kinds of the server and of Karmada; whatever else a new version brings has to be decided about here."""
    closed = set()
    for resource, served in (await served_by(instance)).items():
        group, _, plural = resource.partition(":")
        if "/" in plural:
            continue
        verb = "list" if "list" in served.verbs else "create"
        if permission_for(Attributes(verb=verb, group=group, resource=plural)) is None:
            closed.add(resource)
        kind = BY_RESOURCE.get((group, plural))
        assert kind is None or kind.namespaced is served.namespaced, resource
    assert closed == CLOSED.keys()
