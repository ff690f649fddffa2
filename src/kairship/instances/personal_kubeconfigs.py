"""Kubeconfigs for users: each user gets a service account in the cluster, and a token of it that expires.

No user is given the credential of the plane. Deleting the service account in the cluster revokes the access at once.
"""

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from kairship.instances.account_tokens import issue_token
from kairship.kube import Client
from kairship.resources import NAMESPACE

_RBAC = "rbac.authorization.k8s.io"
_FIELD_MANAGER = "kairship"

Manifest = dict[str, Any]


class Person(msgspec.Struct, frozen=True):
    """The user who gets the kubeconfig."""

    id: str
    name: str

    @property
    def account(self) -> str:
        """The name of the service account; it is valid whatever characters the id has."""
        return f"kairship-user-{hashlib.sha256(self.id.encode()).hexdigest()[:20]}"


class Role(msgspec.Struct, frozen=True):
    """The ClusterRole that the service account is bound to."""

    name: str
    rules: Sequence[Manifest]


class IssuedKubeconfig(msgspec.Struct, frozen=True):
    """A kubeconfig and when its token expires. The representation does not show the kubeconfig."""

    kubeconfig: bytes
    expires_at: dt.datetime

    def __repr__(self) -> str:
        return f"IssuedKubeconfig(expires_at={self.expires_at})"


async def issue_kubeconfig(
    client: Client, person: Person, role: Role, *, cluster: str, seconds: int, timeout: float
) -> IssuedKubeconfig:
    """Issues a kubeconfig for `person`, whose context is called `cluster`. `timeout` is for each call."""
    for manifest in manifests(person, role):
        await client.apply_object(manifest, field_manager=_FIELD_MANAGER, timeout=timeout)
    issued = await issue_token(client, namespace=NAMESPACE, account=person.account, seconds=seconds, timeout=timeout)
    connection = msgspec.structs.replace(
        client.connection, client_cert=None, client_key=None, token=issued.token, token_file=None
    )
    return IssuedKubeconfig(connection.to_kubeconfig(name=cluster, user=person.name or person.account), issued.ends)


def manifests(person: Person, role: Role) -> list[Manifest]:
    """The objects that the cluster must have before a token can be issued, in this order."""
    annotations = {"kairship.io/user": person.id, "kairship.io/user-name": person.name}
    account = {"name": person.account, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": role.name}, "rules": [*role.rules]},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**account, "annotations": annotations}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": person.account, "annotations": annotations},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role.name},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]


def policy_rule(groups: list[str], resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}
