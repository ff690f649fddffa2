"""The Secret with the plane's kubeconfig for an instance, in the plane's namespace.

Its name contains the beginning of the instance's UID, so an instance that is created under the name of an earlier one
never finds the Secret of its predecessor, and a released instance can be adopted again by the Secret that stays behind.
"""

import base64
from typing import Any

from kairship.controllers.global_cluster import INSTANCE
from kairship.controllers.lifecycle.operation import InstanceOperation
from kairship.kube import Connection, kinds
from kairship.reconcile import RetryableError
from kairship.resources import KUBECONFIG, NAMESPACE, Instance, SecretReference

UID_LABEL = "kairship.io/instance-uid"


def secret_name(instance: Instance) -> str:
    return f"instance-{instance.name}-{instance.metadata.uid[:8]}"


async def publish(operation: InstanceOperation) -> None:
    """Writes the Secret of the instance and names it in the status. Idempotent."""
    instance, connection = operation.instance, await _connection(operation)
    secret = _secret(instance, connection)
    secret["metadata"]["ownerReferences"] = [
        {"apiVersion": INSTANCE.api_version, "kind": INSTANCE.kind, "name": instance.name, "uid": operation.uid}
    ]
    await operation.context.owner.apply(kinds.SECRETS, secret)
    operation.writer.set(credentials=SecretReference(name=secret_name(instance)), endpoint=connection.server)


async def hand_over(operation: InstanceOperation) -> None:
    """Leaves the Secret behind when the instance is released: the Karmada can be adopted by it."""
    if operation.status.credentials is not None:
        await operation.context.owner.apply(kinds.SECRETS, _secret(operation.instance, await _connection(operation)))


async def withdraw(operation: InstanceOperation) -> None:
    """Removes the Secret. Idempotent."""
    await operation.context.client.delete(
        kinds.SECRETS, secret_name(operation.instance), namespace=NAMESPACE, missing_ok=True
    )


async def _connection(operation: InstanceOperation) -> Connection:
    try:
        return await operation.driver.connection(operation.uid)
    except Exception as error:
        operation.check_term()
        raise RetryableError(f"the driver has no kubeconfig for the instance: {error}") from error


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
