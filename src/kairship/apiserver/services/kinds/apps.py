"""The Apps service: Deployments."""

from protobuf.wkt import Empty

from kairship.apiserver.services.kinds.deployments import DEPLOYMENTS
from kairship.apiserver.services.kinds.promoting import promote_deployment
from kairship.apiserver.services.resources import Operations, ResourceService
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import PromoteMemberClusterDeploymentRequest
from kairship.kube import kinds
from kairship.rpc.calls import Call

_PROMOTED = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.CONFIGMAPS, kinds.SECRETS, kinds.PROPAGATION_POLICIES)


class AppsService(ResourceService):
    """kairship.v1alpha1.Apps."""

    def __init__(self, operations: Operations) -> None:
        super().__init__("Apps", (DEPLOYMENTS,), operations)

    async def promote_member_cluster_deployment(
        self, request: PromoteMemberClusterDeploymentRequest, call: Call
    ) -> Empty:
        await promote_deployment(self._operations.reach, request, call)
        await self._operations.writes.several(request.instance, _PROMOTED, call)
        return Empty()
