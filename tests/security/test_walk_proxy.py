"""Calls the native proxy as every kind of caller, with every verb on many kinds. The expectations are written by hand.

A request is granted by bindings, or passed on to the RBAC of the instance in the caller's own name, or refused whatever
RBAC says, or answered as if the instance did not exist.
"""

import itertools

import pytest
from support.bindings import World

from kairship.access import Attributes, Role
from kairship.apiserver.proxy.request.authorisation import ProxyAuthoriser
from kairship.apiserver.proxy.request.request_info import ResourceRequest
from kairship.apiserver.proxy.request.target import Target
from kairship.rpc.calls import Caller
from kairship.rpc.errors import NotFound, PermissionDenied

from .test_walk import EVERYBODY, Somebody, bindings

V, E, A, P, NOBODY = Role.VIEWER, Role.EDITOR, Role.ADMIN, Role.PLATFORM_ADMIN, None
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")

KINDS: tuple[tuple[str, str, str, Role | None, Role | None], ...] = (
    # group, resource, subresource, the least role that reads it and the least that writes it
    ("", "configmaps", "", V, E),
    ("", "secrets", "", E, E),
    ("", "events", "", V, E),
    ("", "endpoints", "", V, NOBODY),
    ("", "resourcequotas", "", V, A),
    ("apps", "deployments", "", V, E),
    ("apps", "controllerrevisions", "", V, NOBODY),
    ("policy.karmada.io", "propagationpolicies", "", V, E),
    ("policy.karmada.io", "federatedresourcequotas", "", V, A),
    ("policy.karmada.io", "clustertaintpolicies", "", V, A),
    ("work.karmada.io", "resourcebindings", "", V, NOBODY),
    ("work.karmada.io", "works", "", P, NOBODY),
    ("config.karmada.io", "resourceinterpretercustomizations", "", V, P),
    ("cluster.karmada.io", "clusters", "proxy", NOBODY, NOBODY),
    ("cluster.karmada.io", "clusters", "", V, NOBODY),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "", A, A),
    ("rbac.authorization.k8s.io", "roles", "", A, A),
    ("certificates.k8s.io", "certificatesigningrequests", "", NOBODY, NOBODY),
    ("certificates.k8s.io", "certificatesigningrequests", "approval", NOBODY, NOBODY),
    ("apiextensions.k8s.io", "customresourcedefinitions", "", V, A),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", V, A),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "", V, NOBODY),
    ("apiregistration.k8s.io", "apiservices", "", V, A),
    ("", "serviceaccounts", "token", NOBODY, NOBODY),
    ("", "users", "", NOBODY, NOBODY),
    ("authentication.k8s.io", "tokenreviews", "", NOBODY, NOBODY),
    ("example.org", "widgets", "", V, E),
    ("example.org", "widgets", "proxy", NOBODY, NOBODY),
    ("unknown", "widgets", "", NOBODY, NOBODY),
)
PARTS: dict[tuple[str, str, str, str], Role | None] = {
    # group, resource, subresource and verb: the least role that may
    ("", "pods", "log", "get"): V,
    ("", "pods", "exec", "get"): E,
    ("", "pods", "exec", "create"): E,
    ("", "pods", "attach", "get"): E,
    ("", "pods", "portforward", "get"): E,
    ("", "pods", "portforward", "create"): E,
    ("", "pods", "ephemeralcontainers", "patch"): E,
    ("", "pods", "eviction", "create"): E,
    ("apps", "deployments", "scale", "get"): V,
    ("apps", "deployments", "scale", "update"): E,
    ("", "pods", "proxy", "get"): NOBODY,
    ("", "pods", "proxy", "create"): NOBODY,
    ("", "services", "proxy", "get"): NOBODY,
    ("", "services", "proxy", "create"): NOBODY,
    ("", "nodes", "proxy", "get"): NOBODY,
    ("", "serviceaccounts", "token", "create"): NOBODY,
    ("", "namespaces", "finalize", "update"): NOBODY,
}
ON_INSTANCE = frozenset({"resourcequotas", "federatedresourcequotas"})
"""Kinds whose writing takes a right on the whole instance, although they are in namespaces."""
CLUSTER_SCOPED = frozenset(
    {"clusterrolebindings", "customresourcedefinitions", "mutatingwebhookconfigurations", "apiservices"}
    | {"clustertaintpolicies", "resourceinterpretercustomizations"}
)
"""Kinds that are only read in members."""
PLACES = ("shop", "karmada-cluster", "")
GRANTED, PASSED, REFUSED, HIDDEN = "granted", "passed on", "refused", "hidden"


def expected(
    who: Somebody,
    resource: str,
    namespace: str,
    least: Role | None,
    *,
    writes: bool = False,
    member: bool = False,
    here: str = "east",
) -> str:
    if who.must_change_password:
        return REFUSED
    if not (who.on_platform or who.instance == here):
        return HIDDEN
    if least is None or who.limited_to is not None:  # that token is limited to other permissions
        return REFUSED
    if writes and member and resource in CLUSTER_SCOPED:
        return REFUSED
    whole = who.on_platform or not who.namespace
    guarded = namespace == "karmada-cluster" or (resource in {"secrets", "works"} and not namespace)
    # Secrets in the namespaces of the system hold credentials of members, and in a member Pods lead to them.
    opener = P if resource in {"secrets", "works"} or (writes and member) else A
    if guarded and not (whole and who.role is not None and who.role >= opener):
        return REFUSED
    holds = whole or (namespace and who.namespace == namespace and not (writes and resource in ON_INSTANCE))
    if holds and who.role is not None and who.role >= least:
        return GRANTED
    return REFUSED if least is P else PASSED


def outcome(rights: ProxyAuthoriser, name: str, attributes: Attributes, *, member: bool = False) -> str:
    who = EVERYBODY[name]
    caller = Caller(
        id="member" if who.group else name,
        name=name,
        groups=(name,) if who.group else (),
        limited_to=frozenset({"kairship.jobs.get"}) if who.limited_to else None,
        must_change_password=who.must_change_password,
    )
    target = Target(instance="east", cluster="frankfurt" if member else None, path="/")
    try:
        admitted = rights.authorise(caller, target, ResourceRequest(attributes=attributes, version="v1", name=""))
    except NotFound:
        return HIDDEN
    except PermissionDenied:
        return REFUSED
    assert admitted.identity.user == f"kairship:user:{caller.id}"
    assert list(admitted.identity.groups) == [f"kairship:group:{group}" for group in caller.groups]
    return GRANTED if admitted.granted else PASSED


@pytest.mark.parametrize("name", EVERYBODY)
def test_everybody_meets_what_is_written_here(name: str) -> None:
    rights = ProxyAuthoriser(World(*bindings()).authoriser)
    wrong = []
    for (group, resource, part, reader, writer), namespace in itertools.product(KINDS, PLACES):
        for verb in (*READ, *WRITE, "impersonate", "bind", "escalate", "*"):
            least = reader if verb in READ else writer if verb in WRITE else NOBODY
            attributes = Attributes(verb=verb, group=group, resource=resource, subresource=part, namespace=namespace)
            for member in (False, True):
                wanted = expected(EVERYBODY[name], resource, namespace, least, writes=verb in WRITE, member=member)
                found = outcome(rights, name, attributes, member=member)
                if found != wanted:
                    wrong.append(f"{attributes}: {found}, not {wanted}")
    for (group, resource, part, verb), least in PARTS.items():
        attributes = Attributes(verb=verb, group=group, resource=resource, subresource=part, namespace="shop")
        wanted, found = expected(EVERYBODY[name], resource, "shop", least), outcome(rights, name, attributes)
        if found != wanted:
            wrong.append(f"{attributes}: {found}, not {wanted}")
    assert wrong == []
