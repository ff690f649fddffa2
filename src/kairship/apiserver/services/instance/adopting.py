"""Taking a Karmada that exists into management: its kubeconfig becomes a Secret, and an instance that names it.

The kubeconfig is looked at before anything is written, and the Secret goes again if the instance cannot be created.
"""

import asyncio
import base64
import secrets

from kairship.apiserver.services.instance.part import Part
from kairship.apiserver.services.instance.view import instance_view
from kairship.apiserver.services.reach import FIELD_MANAGER
from kairship.gen.kairship.instance.v1alpha1.instance_pb import Instance
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import AdoptInstanceRequest
from kairship.instances.pool_sources import connection_from
from kairship.kube import ConfigError, Object, kinds
from kairship.resources import ADOPTS_LABEL, KUBECONFIG, NAMESPACE, DriverName
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import AlreadyExists, InvalidArgument
from kairship.rpc.own_kinds import SeenInstance


class Adopting(Part):
    async def adopt_instance(self, request: AdoptInstanceRequest, call: Call) -> Instance:
        kubeconfig = request.kubeconfig.encode()
        try:
            await asyncio.to_thread(connection_from, kubeconfig)
        except ConfigError as error:
            raise InvalidArgument(violations=[("kubeconfig", str(error))]) from None
        if await self._own.instances.get(request.name, call) is not None:
            raise AlreadyExists(f"there is an instance {request.name} already: choose another name")
        secret = f"adopt-{request.name}-{secrets.token_hex(4)}"
        await self._store(secret, kubeconfig, call)
        try:
            created = await self._create(request, secret, call)
        except BaseException:
            await self._own.client.delete(kinds.SECRETS, secret, namespace=NAMESPACE, missing_ok=True)
            raise
        await self._own.instances.written(created.metadata.name, created.metadata.resource_version, call)
        return instance_view(created)

    async def _store(self, name: str, kubeconfig: bytes, call: Call) -> None:
        secret: Object = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {ADOPTS_LABEL: "instance"}},
            "type": "Opaque",
            "data": {KUBECONFIG: base64.b64encode(kubeconfig).decode()},
        }
        await self._own.client.create(kinds.SECRETS, secret, field_manager=FIELD_MANAGER, timeout=patience(call))

    async def _create(self, request: AdoptInstanceRequest, secret: str, call: Call) -> SeenInstance:
        wanted: Object = {
            "metadata": {"name": request.name},
            "spec": {
                "driver": str(DriverName.EXTERNAL),
                "alias": request.alias,
                "kubeconfigSecret": {"name": secret},
            },
        }
        resource = self._own.instances.resource
        created = await self._own.client.create(
            resource, wanted, field_manager=FIELD_MANAGER, as_type=SeenInstance, timeout=patience(call)
        )
        # The credential goes with the instance: it was given for this and nothing else.
        owner = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": created.metadata.name,
            "uid": created.metadata.uid,
        }
        await self._own.client.patch(
            kinds.SECRETS,
            secret,
            {"metadata": {"ownerReferences": [owner]}},
            namespace=NAMESPACE,
            timeout=patience(call),
        )
        return created
