"""Changes of a cluster's spec, labels and credential. A new endpoint or credential is verified before it is used."""

from typing import Any, Literal

from protobuf import Oneof

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import Credential
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    UpdateClusterCredentialRequest,
    UpdateClusterLabelsRequest,
    UpdateClusterRequest,
)
from kairship.instances.pool.sources import KubeconfigMissing, read_kubeconfig
from kairship.kpanda.services.clusters.base import ClustersBase
from kairship.kpanda.services.clusters.cluster_registration import refused
from kairship.kpanda.services.clusters.spec_fields import label_changes, refuse_own_labels, spec_fields
from kairship.kpanda.verification import Verified
from kairship.kube import NotFound
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition
from kairship.rpc.resource_cache import SeenCluster


class ClusterUpdates(ClustersBase):
    async def update_cluster(self, request: UpdateClusterRequest, call: Call) -> Cluster:
        spec = request.spec or ClusterSpec()
        fields = spec_fields(spec, whole=True)
        cluster = await self._require_real(request.name, call)
        if (fields["endpoint"] or "") != (cluster.spec.endpoint or ""):
            await self._verify_endpoint(cluster, fields["endpoint"] or "", call)
        changed = await self._patch(
            request.name, lambda _: {"spec": fields}, call, resource_version=request.resource_version
        )
        return self._shown(changed)

    async def update_cluster_labels(self, request: UpdateClusterLabelsRequest, call: Call) -> Cluster:
        refuse_own_labels([*request.set, *request.remove], field="set")
        labels = label_changes(request.set, request.remove)
        patch: dict[str, Any] = {"metadata": {"labels": labels}}
        return self._shown(await self._patch(request.name, lambda _: patch, call))

    async def update_cluster_credential(self, request: UpdateClusterCredentialRequest, call: Call) -> Cluster:
        cluster = await self._require_real(request.name, call)
        endpoint = cluster.spec.endpoint or ""
        kubeconfig = _accepted(await self._verify(cluster, request.credential or Credential(), endpoint))
        try:
            secret = await self._dependencies.secrets.replace(
                cluster.spec.credentials.name, kubeconfig, timeout=patience(call)
            )
        except NotFound:
            secret = await self._dependencies.secrets.create(
                cluster.spec.credentials.name,
                cluster=cluster.metadata.name,
                kubeconfig=kubeconfig,
                timeout=patience(call),
            )
        version = secret.metadata.resource_version

        def in_use(seen: SeenCluster) -> bool:
            return seen.status.credentials is not None and seen.status.credentials.resource_version == version

        return self._shown(await self._wait_until(cluster, in_use, call))

    async def _verify_endpoint(self, cluster: SeenCluster, endpoint: str, call: Call) -> None:
        try:
            kubeconfig = await read_kubeconfig(
                self._global_cluster.client, cluster.spec.credentials.name, timeout=patience(call)
            )
        except (NotFound, KubeconfigMissing):
            raise FailedPrecondition(f"cluster {cluster.metadata.name} has no credential: give it one first") from None
        form: Oneof[Literal["kubeconfig"], str] = Oneof("kubeconfig", kubeconfig.decode())
        _accepted(await self._verify(cluster, Credential(form=form), endpoint))

    async def _verify(self, cluster: SeenCluster, credential: Credential, endpoint: str) -> Verified:
        return await self._dependencies.verifier.verify(
            credential, endpoint=endpoint, registered=cluster.metadata.name, identity=cluster.status.id or ""
        )


def _accepted(verified: Verified) -> bytes:
    if verified.kubeconfig is None:
        raise refused(verified)
    return verified.kubeconfig
