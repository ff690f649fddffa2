"""The namespaces in which Karmada and Kubernetes keep their own objects, and the permissions that open them.

Rights on an instance do not cover them. An Instance Admin may use them, except for what yields a credential there: the
tokens by which Karmada administers members, and accounts that may do more than any role of the plane. A ServiceAccount
of `kube-system` is such an account too, and a Secret is enough to get its token.
"""

import functools

from kairship.access.catalogue.attributes import Attributes, is_about_secret_data
from kairship.access.catalogue.table import permissions
from kairship.resources import is_reserved

__all__ = [
    "MEMBER_CREDENTIALS_PERMISSION",
    "SYSTEM_NAMESPACES_PERMISSION",
    "guard_of",
    "includes_system_namespaces",
    "is_reserved",
]

SYSTEM_NAMESPACES_PERMISSION = "kairship.systemnamespaces.use"
"""Needed on an instance for its system namespaces; lists leave them out for callers without it."""

MEMBER_CREDENTIALS_PERMISSION = "kairship.membercredentials.use"
"""Needed in a system namespace for what yields a credential, and for a list of all Secrets."""

# Works hold the manifests of Secrets.
_CREDENTIALS = frozenset({"secrets", "serviceaccounts/token", "works"})
_LOGS = "pods/log"


@functools.lru_cache(maxsize=4096)
def guard_of(permission: str, resource: str = "", *, member: bool = False) -> str:
    """The permission that a system namespace needs beside this one, which a request for the resource needs.

    `resource` is a plural, with a subresource after a slash; without it, every resource of the permission counts. In a
    member there are Pods: whoever makes one, enters one, or changes what makes one, has the token of its account.
    """
    defined = permissions().get(permission)
    if defined is None:
        return MEMBER_CREDENTIALS_PERMISSION
    named = {resource} if resource else {rule.resource for rule in defined.rules}
    yields = bool(named & _CREDENTIALS) or (member and defined.delicate and named != {_LOGS})
    return MEMBER_CREDENTIALS_PERMISSION if yields else SYSTEM_NAMESPACES_PERMISSION


def includes_system_namespaces(request: Attributes) -> bool:
    """Whether a request to a Kubernetes API needs the permission of `guard_of` too.

    A list of all Secrets would contain those with the credentials of member clusters. Other lists over all namespaces
    show nothing secret.
    """
    if request.namespace:
        return is_reserved(request.namespace)
    return is_about_secret_data(request)
