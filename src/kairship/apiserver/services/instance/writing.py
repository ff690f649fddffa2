"""Creating, replacing, upgrading and deleting instances.

Each is a change of one object; the lifecycle controller brings it about. What it would refuse later, and can be known
now, is refused now.
"""

from protobuf.wkt import Empty

from kairship.apiserver.services.instance.intent import new_instance
from kairship.apiserver.services.instance.part import Part, refuse_adopted
from kairship.apiserver.services.instance.view import instance_view
from kairship.apiserver.services.manifests import read_manifest
from kairship.apiserver.services.objects import as_json
from kairship.apiserver.services.reach import FIELD_MANAGER
from kairship.apiserver.services.replacing import replace
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
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition, NotFound, PermissionDenied, Unavailable
from kairship.rpc.own_kinds import SeenInstance
from kairship.rpc.refusals import told_as_precondition

_NAMED = 5


class Writing(Part):
    async def create_instance(self, request: CreateInstanceRequest, call: Call) -> Instance:
        wanted = new_instance(request, self._offers)
        await self._check_host(wanted["spec"].get("hostCluster", {}).get("name"), call)
        instances = self._own.instances
        created = await self._own.client.create(
            instances.resource, wanted, field_manager=FIELD_MANAGER, as_type=SeenInstance, timeout=patience(call)
        )
        await instances.written(created.metadata.name, created.metadata.resource_version, call)
        return instance_view(created)

    async def update_instance(self, request: UpdateInstanceRequest, call: Call) -> UpdateInstanceResponse:
        instances = self._own.instances
        manifest = await read_manifest(request.data, instances.resource, name=request.name)
        if not call.sight.reach.everywhere:
            await self._refuse_other_credential(manifest, call)
        replaced = await replace(self._own.client, instances.resource, manifest, call)
        await instances.written(request.name, replaced["metadata"]["resourceVersion"], call)
        return UpdateInstanceResponse(data=as_json(replaced))

    async def _refuse_other_credential(self, manifest: Object, call: Call) -> None:
        """The Secret of another instance would lead whoever may change this one into that one."""
        name = manifest["metadata"]["name"]
        current = (await self._own.instances.require_latest(name, call)).spec.kubeconfig_secret
        wanted = (manifest.get("spec") or {}).get("kubeconfigSecret")
        if wanted != ({"name": current.name} if current else None):
            raise PermissionDenied(
                "which Karmada an instance leads to is decided by those who may change every instance: "
                "leave spec.kubeconfigSecret as it is"
            )

    async def upgrade_instance(self, request: UpgradeInstanceRequest, call: Call) -> Instance:
        def change(current: SeenInstance) -> dict[str, str] | None:
            refuse_adopted(current, "upgrade it")
            self._offers.check_version(current.spec.driver, request.version, field="version")
            running = current.status.karmada_version
            if running and is_older(request.version, than=running):
                raise FailedPrecondition(
                    f"{running} runs and {request.version} is older: it may not understand the data; "
                    "restore a backup that was taken with it instead"
                )
            return None if current.spec.version == request.version else {"version": request.version}

        return instance_view(await self._change(request.name, change, call))

    async def delete_instance(self, request: DeleteInstanceRequest, call: Call) -> Empty:
        instances = self._own.instances
        current = await instances.require_latest(request.name, call)
        await self._refuse_while_joined(current, call)
        with told_as_precondition():  # a cluster may join in between
            await self._own.client.delete(
                instances.resource, request.name, uid=current.metadata.uid, timeout=patience(call)
            )
        await instances.deleted(request.name, current.metadata.uid, call)
        return Empty()

    async def _refuse_while_joined(self, instance: SeenInstance, call: Call) -> None:
        name = instance.metadata.name
        joined = [
            membership.metadata.name
            for membership in await self._own.memberships.all(call)
            if membership.spec.instance == name
        ]
        if not joined and _is_destroyed(instance) and instance.status.credentials is not None:
            joined = await self._known_to_karmada(name, call)
        if joined:
            named = ", ".join(sorted(joined)[:_NAMED]) + (" …" if len(joined) > _NAMED else "")
            raise FailedPrecondition(f"instance {name} has {len(joined)} joined clusters ({named}): remove them first")

    async def _known_to_karmada(self, name: str, call: Call) -> list[str]:
        """Clusters that joined the instance without us. One that does not answer must be deletable all the same."""
        try:
            page = await self._reach.instance(name).list(kinds.CLUSTERS, as_type=MetadataOnly, timeout=patience(call))
        except (KubeError, NotFound, Unavailable):
            return []
        return [cluster.metadata.name for cluster in page.items]

    async def _check_host(self, name: str | None, call: Call) -> None:
        if not name:
            return
        found = await self._own.clusters.get(name, call)
        if found is None or found.spec.virtual:
            raise FailedPrecondition(f"container management has no cluster {name}: register it first, or leave it out")


def _is_destroyed(instance: SeenInstance) -> bool:
    """Whether deleting it ends its control plane, and with it what its members have of it."""
    return not instance.spec.release_on_delete and instance.spec.driver is not DriverName.EXTERNAL
