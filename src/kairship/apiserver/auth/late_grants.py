"""Grants that have not arrived inside an instance yet.

A binding becomes RBAC objects inside the instance and its members a moment after the plane knows it, and an API server
there may see a RoleBinding before the role that it refers to. In between RBAC refuses what the binding grants. Such a
refusal had no effect, so the same request may be sent again for a few seconds. A 403 of an admission webhook or policy
is about the object and not about the caller: it is final.

Rights on a new custom kind arrive a moment after its definition. A chart that defines a kind and at once grants rights
on it, in a role of its own, would be refused as if its user granted more than the user holds.
"""

import re

from kairship.access.catalogue.kinds import is_custom
from kairship.kube import Impersonation
from kairship.rpc.admission_errors import is_admission_refusal

PROPAGATION_SECONDS = 5.0
"""Seconds within which a grant arrives in an instance that can be reached."""

_KARMADA_IMPERSONATOR = 'User "system:serviceaccount:karmada-cluster:karmada-impersonator" cannot impersonate '
"""Karmada reaches a member as this account, and brings it the right to impersonate each user and group one by one."""


_ESCALATION = "is attempting to grant RBAC permissions not currently held"
_API_GROUPS = re.compile(r"APIGroups:\[([^\]]*)\]")
_QUOTED = re.compile(r'"([^"]*)"')


def is_rbac_refusal(message: str, identity: Impersonation) -> bool:
    """Whether the message of a 403 says that RBAC does not allow the request to this identity.

    Kubernetes words it `… forbidden: User "<name>" cannot <verb> resource "…" in API group "…"`, and of a role that
    grants too much: `… user "<name>" (groups=…) is attempting to grant RBAC permissions not currently held:
    {APIGroups:["…"], …}`. The latter counts if it is about custom resources alone.
    """
    if is_admission_refusal(message):
        return False
    if f'user "{identity.user}" ' in message and _ESCALATION in message:
        groups = [group for listed in _API_GROUPS.findall(message) for group in _QUOTED.findall(listed)]
        return bool(groups) and all(is_custom(group) for group in groups)
    return f'User "{identity.user}" cannot ' in message or _KARMADA_IMPERSONATOR in message
