"""RBAC's own refusal of a request is told from every other 403."""

import pytest

from kairship.apiserver.auth.late_grants import is_rbac_refusal
from kairship.kube import Impersonation

ANN = Impersonation(user="kairship:user:ann", groups=("kairship:group:team",))
BY_RBAC = 'pods is forbidden: User "kairship:user:ann" cannot list resource "pods" in API group "" at the cluster scope'
IMPERSONATOR = "system:serviceaccount:karmada-cluster:karmada-impersonator"

ESCALATION = (
    'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "kairship:user:ann" (groups=["kairship:group:team"])'
    " is attempting to grant RBAC permissions not currently held:\n"
    '{APIGroups:["example.org"], Resources:["widgets"], Verbs:["get" "list"]}'
)


@pytest.mark.parametrize(
    "message",
    [
        BY_RBAC,
        ESCALATION,
        'forbidden: User "kairship:user:ann" cannot get path "/api"',
        f'clusters.cluster.karmada.io "oregon" is forbidden: {BY_RBAC.partition(": ")[2]}',
        f'groups "kairship:group:team" is forbidden: User "{IMPERSONATOR}" cannot impersonate resource "groups"',
    ],
)
def test_rbac_refuses(message: str) -> None:
    assert is_rbac_refusal(message, ANN)


@pytest.mark.parametrize(
    "message",
    [
        BY_RBAC.replace("user:ann", "user:annabel"),
        ESCALATION.replace("user:ann", "user:annabel"),
        ESCALATION.replace("example.org", "*"),
        ESCALATION + '\n{APIGroups:[""], Resources:["nodes/proxy"], Verbs:["get"]}',
        ESCALATION.partition("{")[0] + '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
        'users "x" is forbidden: User "system:serviceaccount:kairship-system:plane" cannot impersonate resource',
        f'admission webhook "rights.example.org" denied the request: {BY_RBAC}',
        "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'names' with binding 'names' denied request: no",
        'pods "web" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4',
        'namespaces "shop" is forbidden: unable to create new content in namespace shop because it is being terminated',
        "",
    ],
)
def test_another_refusal_is_none_of_rbac(message: str) -> None:
    assert not is_rbac_refusal(message, ANN)
