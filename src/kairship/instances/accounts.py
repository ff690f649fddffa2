"""Access of people to a cluster by kubeconfig: a service account of their own there, and a token of it that ends.

Nobody is handed the plane's credential. Deleting the account in the cluster takes the access away at once.
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
    id: str
    name: str

    @property
    def account(self) -> str:
        """A name for their account, whatever characters the id has."""
        return f"kairship-user-{hashlib.sha256(self.id.encode()).hexdigest()[:20]}"


class Role(msgspec.Struct, frozen=True):
    """What the account may do."""

    name: str
    rules: Sequence[Manifest]


class Issued(msgspec.Struct, frozen=True):
    kubeconfig: bytes
    expires_at: dt.datetime

    def __repr__(self) -> str:
        return f"Issued(expires_at={self.expires_at})"


async def issue(client: Client, person: Person, role: Role, *, cluster: str, seconds: int, timeout: float) -> Issued:
    """A kubeconfig for `person`; the context in it is called `cluster`. `timeout` is for each call."""
    for manifest in manifests(person, role):
        await client.apply_object(manifest, field_manager=_FIELD_MANAGER, timeout=timeout)
    issued = await issue_token(client, namespace=NAMESPACE, account=person.account, seconds=seconds, timeout=timeout)
    connection = msgspec.structs.replace(
        client.connection, client_cert=None, client_key=None, token=issued.token, token_file=None
    )
    return Issued(connection.to_kubeconfig(name=cluster, user=person.name or person.account), issued.ends)


def manifests(person: Person, role: Role) -> list[Manifest]:
    """What the cluster must have before a token can be issued, in this order."""
    who = {"kairship.io/user": person.id, "kairship.io/user-name": person.name}
    place = {"name": person.account, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": role.name}, "rules": [*role.rules]},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**place, "annotations": who}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": person.account, "annotations": who},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role.name},
            "subjects": [{"kind": "ServiceAccount", **place}],
        },
    ]


def access_rule(groups: list[str], resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}
