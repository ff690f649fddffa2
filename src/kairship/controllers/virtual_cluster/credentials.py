"""The Secret with the collector's kubeconfig for an instance.

Its labels say when its token is due for renewal and where it leads, so that the controller need not read its content.
"""

import base64
import hashlib
from typing import Any

from kairship.controllers.global_cluster import INSTANCE, ObservedInstance, SecretFingerprint
from kairship.controllers.virtual_cluster import collector_account
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Context
from kairship.resources import KUBECONFIG, NAMESPACE

INSTANCE_LABEL = "kairship.io/collector-of"
UID_LABEL = "kairship.io/collector-of-uid"
_RENEW_LABEL = "kairship.io/renew-at"
_ADDRESS_LABEL = "kairship.io/address"
LIFETIME = 24 * 3600


def secret_name(instance: ObservedInstance) -> str:
    """Contains the beginning of the UID, so that an instance never finds the Secret of a predecessor of the same
    name."""
    return f"collector-{instance.metadata.name}-{instance.metadata.uid[:8]}"


def renew_at(secret: SecretFingerprint, connection: Connection) -> float:
    """When a new token is due; 0, which is long ago, if the Secret leads to another address or does not say when."""
    labels = secret.metadata.labels or {}
    if labels.get(_ADDRESS_LABEL) != _address(connection):
        return 0.0
    try:
        return float(labels.get(_RENEW_LABEL, ""))
    except ValueError:
        return 0.0


async def renew(context: Context, instance: ObservedInstance, client: Client) -> float:
    """Writes a new token into the Secret and returns when the next one is due. The old token stays valid to its end."""
    issued = await collector_account.token(client, seconds=LIFETIME)
    now = context.clock.wall()
    due = now + (issued.ends - now) / 2
    connection = client.connection
    content = Connection(
        server=connection.server, ca=connection.ca, tls_server_name=connection.tls_server_name, token=issued.token
    ).to_kubeconfig(name=instance.metadata.name, user=collector_account.ACCOUNT)
    labels = {
        INSTANCE_LABEL: instance.metadata.name,
        UID_LABEL: instance.metadata.uid,
        _RENEW_LABEL: str(int(due.timestamp())),
        _ADDRESS_LABEL: _address(connection),
    }
    manifest: dict[str, Any] = {
        "metadata": {
            "name": secret_name(instance),
            "namespace": NAMESPACE,
            "labels": labels,
            "ownerReferences": [owner(instance)],
        },
        "type": "Opaque",
        "data": {KUBECONFIG: base64.b64encode(content).decode()},
    }
    await context.owner.apply(kinds.SECRETS, manifest)
    return due.timestamp()


def owner(instance: ObservedInstance) -> dict[str, str]:
    """The owner reference, for a garbage collector where there is one; this controller does not rely on it."""
    return {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.kind,
        "name": instance.metadata.name,
        "uid": instance.metadata.uid,
    }


def _address(connection: Connection) -> str:
    content = f"{connection.server}\n{connection.tls_server_name}\n".encode() + (connection.ca or b"")
    return hashlib.sha256(content).hexdigest()[:32]
