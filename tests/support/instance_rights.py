"""Rights inside an instance without a binding: the RBAC rules that the permission table gives to a role."""

from collections.abc import Collection

from kairship.access import Role, permissions, permissions_of
from kairship.kube import Client
from kairship.resources import SubjectKind
from kairship.resources.access_binding import name_inside

_RBAC = "rbac.authorization.k8s.io"


async def grant(
    instance: Client, user: str, role: Role = Role.ADMIN, *, namespace: str = "", clusters: Collection[str] = ()
) -> None:
    """Gives a user the RBAC rules of a role, in the whole instance or in one namespace, and the way to `clusters`.

    What the user may do in these clusters is for their own RBAC to say: a member takes the same grant.
    """
    name = f"kairship-tests-{user}-{role.id}"
    held = [permissions()[each] for each in sorted(permissions_of(role))]
    rules = [
        {
            "apiGroups": [rule.group],
            "resources": [rule.resource],
            "verbs": list(rule.verbs),
            **({"resourceNames": sorted(clusters)} if rule.names_clusters else {}),
        }
        for permission in held
        for rule in permission.rules
        if clusters or not rule.names_clusters
    ]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    subject = {"apiGroup": _RBAC, "kind": "User", "name": name_inside(SubjectKind.USER, user)}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name}
    for manifest in (
        {"kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {"kind": kind, "metadata": metadata, "roleRef": reference, "subjects": [subject]},
    ):
        await instance.apply_object({"apiVersion": f"{_RBAC}/v1", **manifest}, field_manager="kairship-tests")
