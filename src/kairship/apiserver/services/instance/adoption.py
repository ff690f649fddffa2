"""The adoption of an existing Karmada: its kubeconfig becomes a Secret, and an Instance that names the Secret.

The kubeconfig is checked before anything is written, and the Secret is deleted again if the Instance cannot be created.
"""

import asyncio
import base64
import secrets

from kairship.apiserver.services.instance.base import InstanceServiceBase
from kairship.apiserver.services.instance.view import instance_view
from kairship.apiserver.services.instance_clients import FIELD_MANAGER
from kairship.gen.kairship.instance.v1alpha1.instance_pb import Instance
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import AdoptInstanceRequest
from kairship.instances.pool.sources import connection_from
from kairship.kube import ConfigError, Object, kinds
from kairship.resources import ADOPTS_LABEL, KUBECONFIG, NAMESPACE, DriverName
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import AlreadyExists, InvalidArgument
from kairship.rpc.resource_cache import SeenInstance


class InstanceAdoption(InstanceServiceBase):
    async def adopt_instance(self, request: AdoptInstanceRequest, call: Call) -> Instance:
        kubeconfig = request.kubeconfig.encode()
        try:
            await asyncio.to_thread(connection_from, kubeconfig)
        except ConfigError as error:
            raise InvalidArgument(violations=[("kubeconfig", str(error))]) from None
        if await self._caches.instances.get(request.name, call) is not None:
            raise AlreadyExists(f"there is an instance {request.name} already: choose another name")
        secret = f"adopt-{request.name}-{secrets.token_hex(4)}"
        await self._store(secret, kubeconfig, call)
        try:
            created = await self._create(request, secret, call)
        except BaseException:
            await self._caches.client.delete(kinds.SECRETS, secret, namespace=NAMESPACE, missing_ok=True)
            raise
        await self._caches.instances.written(created.metadata.name, created.metadata.resource_version, call)
        return instance_view(created)

    async def _store(self, name: str, kubeconfig: bytes, call: Call) -> None:
        secret: Object = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {ADOPTS_LABEL: "instance"}},
            "type": "Opaque",
            "data": {KUBECONFIG: base64.b64encode(kubeconfig).decode()},
        }
        await self._caches.client.create(kinds.SECRETS, secret, field_manager=FIELD_MANAGER, timeout=patience(call))

    async def _create(self, request: AdoptInstanceRequest, secret: str, call: Call) -> SeenInstance:
        wanted: Object = {
            "metadata": {"name": request.name},
            "spec": {
                "driver": str(DriverName.EXTERNAL),
                "alias": request.alias,
                "kubeconfigSecret": {"name": secret},
            },
        }
        resource = self._caches.instances.resource
        created = await self._caches.client.typed(SeenInstance).create(
            resource, wanted, field_manager=FIELD_MANAGER, timeout=patience(call)
        )
        # The Secret is deleted with the instance: the credential was given for this purpose alone.
        owner = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": created.metadata.name,
            "uid": created.metadata.uid,
        }
        await self._caches.client.patch(
            kinds.SECRETS,
            secret,
            {"metadata": {"ownerReferences": [owner]}},
            namespace=NAMESPACE,
            timeout=patience(call),
        )
        return created
