"""Creating, replacing, upgrading and deleting instances.

Each method changes one object, and the lifecycle controller carries the change out. What the controller would refuse
later is refused here if it is known already.
"""

from protobuf.wkt import Empty

from kairship.apiserver.services.instance.base import InstanceServiceBase, refuse_adopted
from kairship.apiserver.services.instance.new_instance import new_instance
from kairship.apiserver.services.instance.view import instance_view
from kairship.apiserver.services.instance_clients import FIELD_MANAGER
from kairship.apiserver.services.manifests import read_manifest
from kairship.apiserver.services.object_views import as_json
from kairship.apiserver.services.replacement import replace
from kairship.gen.kairship.instance.v1alpha1.instance_pb import (
    CreateInstanceRequest,
    DeleteInstanceRequest,
    Instance,
    UpdateInstanceRequest,
    UpdateInstanceResponse,
)
from kairship.gen.kairship.instance.v1alpha1.lifecycle_pb import UpgradeInstanceRequest
from kairship.kube import KubeError, Object, kinds
from kairship.reconcile import MetadataOnly
from kairship.resources import DriverName, is_older
from kairship.rpc.admission_errors import admission_as_failed_precondition
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition, NotFound, PermissionDenied, Unavailable
from kairship.rpc.resource_cache import SeenInstance

_MAX_NAMED = 5


class InstanceWrites(InstanceServiceBase):
    async def create_instance(self, request: CreateInstanceRequest, call: Call) -> Instance:
        wanted = new_instance(request, self._drivers)
        await self._check_host(wanted["spec"].get("hostCluster", {}).get("name"), call)
        instances = self._caches.instances
        created = await self._caches.client.typed(SeenInstance).create(
            instances.resource, wanted, field_manager=FIELD_MANAGER, timeout=patience(call)
        )
        await instances.written(created.metadata.name, created.metadata.resource_version, call)
        return instance_view(created)

    async def update_instance(self, request: UpdateInstanceRequest, call: Call) -> UpdateInstanceResponse:
        instances = self._caches.instances
        manifest = await read_manifest(request.data, instances.resource, name=request.name)
        if not call.sight.coverage.everywhere:
            await self._refuse_other_credential(manifest, call)
        replaced = await replace(self._caches.client, instances.resource, manifest, call)
        await instances.written(request.name, replaced["metadata"]["resourceVersion"], call)
        return UpdateInstanceResponse(data=as_json(replaced))

    async def _refuse_other_credential(self, manifest: Object, call: Call) -> None:
        """With the Secret of another instance, a caller who may change this instance would get into that one."""
        name = manifest["metadata"]["name"]
        current = (await self._caches.instances.require_latest(name, call)).spec.kubeconfig_secret
        wanted = (manifest.get("spec") or {}).get("kubeconfigSecret")
        if wanted != ({"name": current.name} if current else None):
            raise PermissionDenied(
                "only a caller who may change every instance may change which Karmada an instance leads to: "
                "leave spec.kubeconfigSecret as it is, or ask a platform administrator"
            )

    async def upgrade_instance(self, request: UpgradeInstanceRequest, call: Call) -> Instance:
        def change(current: SeenInstance) -> dict[str, str] | None:
            refuse_adopted(current, "upgrade it")
            self._drivers.check_version(current.spec.driver, request.version, field="version")
            running = current.status.karmada_version
            if running and is_older(request.version, than=running):
                raise FailedPrecondition(
                    f"{running} runs and {request.version} is older: it may not understand the data; "
                    "restore a backup that was taken with it instead"
                )
            return None if current.spec.version == request.version else {"version": request.version}

        return instance_view(await self._change(request.name, change, call))

    async def delete_instance(self, request: DeleteInstanceRequest, call: Call) -> Empty:
        instances = self._caches.instances
        current = await instances.require_latest(request.name, call)
        await self._refuse_while_joined(current, call)
        with admission_as_failed_precondition():  # a cluster may have joined meanwhile
            await self._caches.client.delete(
                instances.resource, request.name, uid=current.metadata.uid, timeout=patience(call)
            )
        await instances.deleted(request.name, current.metadata.uid, call)
        return Empty()

    async def _refuse_while_joined(self, instance: SeenInstance, call: Call) -> None:
        name = instance.metadata.name
        joined = [
            membership.metadata.name
            for membership in await self._caches.memberships.all(call)
            if membership.spec.instance == name
        ]
        if not joined and _is_destroyed(instance) and instance.status.credentials is not None:
            joined = await self._known_to_karmada(name, call)
        if joined:
            named = ", ".join(sorted(joined)[:_MAX_NAMED]) + (" …" if len(joined) > _MAX_NAMED else "")
            raise FailedPrecondition(f"instance {name} has {len(joined)} joined clusters ({named}): remove them first")

    async def _known_to_karmada(self, name: str, call: Call) -> list[str]:
        """Returns the clusters that joined without Kairship; none if the instance is down: it must stay deletable."""
        try:
            page = await self._clients.instance(name).typed(MetadataOnly).list(kinds.CLUSTERS, timeout=patience(call))
        except (KubeError, NotFound, Unavailable):
            return []
        return [cluster.metadata.name for cluster in page.items]

    async def _check_host(self, name: str | None, call: Call) -> None:
        if not name:
            return
        found = await self._caches.clusters.get(name, call)
        if found is None or found.spec.virtual:
            raise FailedPrecondition(
                f"container management has no cluster {name}: register it first, or leave the host cluster out"
            )


def _is_destroyed(instance: SeenInstance) -> bool:
    """Whether deleting the instance destroys its control plane, and with it what it has propagated to its members."""
    return not instance.spec.release_on_delete and instance.spec.driver is not DriverName.EXTERNAL
