"""The Secret that opens an instance for the collector. What is known of it is in its labels: nobody has to read it."""

import base64
import hashlib
from typing import Any

from kairship.controllers.global_cluster import INSTANCE, ObservedInstance, SecretFingerprint
from kairship.controllers.virtual_cluster import identity
from kairship.kube import Client, Connection, kinds
from kairship.reconcile import Context
from kairship.resources import KUBECONFIG, NAMESPACE

INSTANCE_LABEL = "kairship.io/collector-of"
UID_LABEL = "kairship.io/collector-of-uid"
_RENEW_LABEL = "kairship.io/renew-at"
_ADDRESS_LABEL = "kairship.io/address"
LIFETIME = 24 * 3600


def secret_name(instance: ObservedInstance) -> str:
    """With the beginning of the UID: an instance never meets the Secret of a predecessor of the same name."""
    return f"collector-{instance.metadata.name}-{instance.metadata.uid[:8]}"


def renew_at(secret: SecretFingerprint, connection: Connection) -> float:
    """The time at which a new token is due; 0, which is long ago, if it leads elsewhere or nothing is known."""
    labels = secret.metadata.labels or {}
    if labels.get(_ADDRESS_LABEL) != _address(connection):
        return 0.0
    try:
        return float(labels.get(_RENEW_LABEL, ""))
    except ValueError:
        return 0.0


async def renew(context: Context, instance: ObservedInstance, client: Client) -> float:
    """A new token in the Secret; the one before stays valid to its own end. Returns when the next one is due."""
    issued = await identity.token(client, seconds=LIFETIME)
    now = context.clock.wall()
    due = now + (issued.ends - now) / 2
    connection = client.connection
    content = Connection(
        server=connection.server, ca=connection.ca, tls_server_name=connection.tls_server_name, token=issued.token
    ).to_kubeconfig(name=instance.metadata.name, user=identity.ACCOUNT)
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
    """Where there is a garbage collector it removes what is left behind; this controller does not rely on it."""
    return {
        "apiVersion": INSTANCE.api_version,
        "kind": INSTANCE.kind,
        "name": instance.metadata.name,
        "uid": instance.metadata.uid,
    }


def _address(connection: Connection) -> str:
    content = f"{connection.server}\n{connection.tls_server_name}\n".encode() + (connection.ca or b"")
    return hashlib.sha256(content).hexdigest()[:32]
