"""Access of people to a cluster by kubeconfig: a service account of their own there, and a token of it that ends.

Nobody is handed the plane's credential. Deleting the account in the cluster takes the access away at once.
"""

import datetime as dt
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from kairship.kube import BadReply, Client, kinds
from kairship.resources import NAMESPACE

SHORTEST = 600
"""API servers issue no token for fewer seconds."""

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


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: dt.datetime | None = None


class _TokenReply(msgspec.Struct):
    status: _Status


async def issue(client: Client, person: Person, role: Role, *, cluster: str, seconds: int, timeout: float) -> Issued:
    """A kubeconfig for `person`; the context in it is called `cluster`. `timeout` is for each call."""
    for manifest in manifests(person, role):
        await client.apply_object(manifest, field_manager=_FIELD_MANAGER, timeout=timeout)
    reply = await client.create(
        kinds.SERVICE_ACCOUNTS,
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": max(seconds, SHORTEST)},
        },
        namespace=NAMESPACE,
        name=person.account,
        subresource="token",
        as_type=_TokenReply,
        timeout=timeout,
    )
    token, end = reply.status.token, reply.status.expiration_timestamp
    if not token or end is None:
        raise BadReply(f"{client.connection.server} has issued no token")
    connection = msgspec.structs.replace(
        client.connection, client_cert=None, client_key=None, token=token, token_file=None
    )
    return Issued(connection.to_kubeconfig(name=cluster, user=person.name or person.account), end)


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
