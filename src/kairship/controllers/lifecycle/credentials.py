"""The plane's own kubeconfig for an instance: a Secret in the plane's namespace.

Its name carries the beginning of the instance's UID, so an instance that is made under a name used before never meets
the Secret of its predecessor, and what was let go can be adopted by the Secret that stays behind.
"""

import base64
from typing import Any

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.work import Work
from kairship.kube import Connection, kinds
from kairship.reconcile import RetryableError
from kairship.resources import KUBECONFIG, NAMESPACE, Instance, SecretReference

UID_LABEL = "kairship.io/instance-uid"


def secret_name(instance: Instance) -> str:
    return f"instance-{instance.name}-{instance.metadata.uid[:8]}"


async def publish(work: Work) -> None:
    """Write the credential of the instance and say in its status where it is. Idempotent."""
    instance, connection = work.instance, await _connection(work)
    secret = _secret(instance, connection)
    secret["metadata"]["ownerReferences"] = [
        {"apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "name": instance.name, "uid": work.uid}
    ]
    await work.context.owner.apply(kinds.SECRETS, secret)
    work.journal.set(credentials=SecretReference(name=secret_name(instance)), endpoint=connection.server)


async def hand_over(work: Work) -> None:
    """Leave the credential behind when the instance is let go: it leads whoever adopts the Karmada next."""
    if work.journal.status.credentials is not None:
        await work.context.owner.apply(kinds.SECRETS, _secret(work.instance, await _connection(work)))


async def withdraw(work: Work) -> None:
    """Remove the credential. Idempotent."""
    await work.context.client.delete(kinds.SECRETS, secret_name(work.instance), namespace=NAMESPACE, missing_ok=True)


async def _connection(work: Work) -> Connection:
    try:
        return await work.driver.connection(work.uid)
    except Exception as error:
        work.check_term()
        raise RetryableError(f"the driver does not know the way to the instance: {error}") from error


def _secret(instance: Instance, connection: Connection) -> dict[str, Any]:
    content = connection.to_kubeconfig(name=instance.name)
    return {
        "metadata": {
            "name": secret_name(instance),
            "namespace": NAMESPACE,
            "labels": {UID_LABEL: instance.metadata.uid},
        },
        "type": "Opaque",
        "data": {KUBECONFIG: base64.b64encode(content).decode()},
    }
