"""Registers clusters, and removes them.

A cluster is verified first. Then the Secret with its credential is created, and then the Cluster that names it. A
registration that is killed in between leaves a Secret that the janitor removes, and never a Cluster without a Secret. A
registration that is refused leaves nothing.
"""

from typing import Any

from protobuf.wkt import Empty

from kairship.gen.kairship.kpanda.v1alpha1.cluster_pb import Cluster, ClusterSpec
from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import CheckResult, CheckType, Credential, Verification
from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    CreateClusterRequest,
    DeleteClusterRequest,
    ValidateClusterRequest,
)
from kairship.kpanda.credentials.secrets import FIELD_MANAGER, CredentialSecret, secret_name
from kairship.kpanda.services.clusters.base import ClustersBase
from kairship.kpanda.services.clusters.spec_fields import refuse_own_labels, spec_fields
from kairship.kpanda.verification import Verified
from kairship.kube import AlreadyExists as Taken
from kairship.kube import ApiError as KubeRefusal
from kairship.rpc.admission_errors import admission_as_failed_precondition
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, AlreadyExists, ApiError, FailedPrecondition, InvalidArgument
from kairship.rpc.resource_cache import SeenCluster

_MISTAKES = (CheckType.FORM, CheckType.ADDRESS)


class ClusterRegistration(ClustersBase):
    async def validate_cluster(self, request: ValidateClusterRequest, call: Call) -> Verification:
        credential = request.credential or Credential()
        if not request.cluster:
            return (await self._dependencies.verifier.verify(credential, endpoint=request.endpoint)).result
        cluster = await self._visibility.require(request.cluster, call)
        verified = await self._dependencies.verifier.verify(
            credential,
            endpoint=request.endpoint or cluster.spec.endpoint or "",
            registered=request.cluster,
            identity=cluster.status.id or "",
        )
        return verified.result

    async def create_cluster(self, request: CreateClusterRequest, call: Call) -> Cluster:
        spec = request.spec or ClusterSpec()
        refuse_own_labels(request.labels, field="labels")
        await self._refuse_existing(request.name, call)
        verified = await self._dependencies.verifier.verify(request.credential or Credential(), endpoint=spec.endpoint)
        if verified.kubeconfig is None:
            raise refused(verified)
        secret = await self._create_secret(verified.result.id, verified.kubeconfig, request.name, call)
        created = await self._create(request, spec, secret, call)
        name, uid = created.metadata.name, created.metadata.uid
        await self._dependencies.secrets.set_owner(secret.metadata.name, cluster=name, uid=uid, timeout=patience(call))
        await self._global_cluster.clusters.written(name, created.metadata.resource_version, call)
        return self._shown(await self._wait_until(created, lambda cluster: cluster.status.id is not None, call))

    async def delete_cluster(self, request: DeleteClusterRequest, call: Call) -> Empty:
        cluster = await self._visibility.require(request.name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(f"cluster {request.name} stands for an instance, and goes with it")
        uid = cluster.metadata.uid
        with admission_as_failed_precondition():
            await self._global_cluster.client.delete(
                self._global_cluster.clusters.resource, request.name, uid=uid, timeout=patience(call)
            )
        await self._global_cluster.clusters.deleted(request.name, uid, call)
        return Empty()

    async def _refuse_existing(self, name: str, call: Call) -> None:
        if await self._global_cluster.clusters.read(name, call) is not None:
            raise AlreadyExists(f"there is a cluster {name} already: choose another name")

    async def _create_secret(self, identity: str, kubeconfig: bytes, cluster: str, call: Call) -> CredentialSecret:
        name = secret_name(identity)
        for _ in range(2):
            try:
                return await self._dependencies.secrets.create(
                    name, cluster=cluster, kubeconfig=kubeconfig, timeout=patience(call)
                )
            except Taken:
                await self._remove_leftover(name, call)
        raise Aborted("another caller is registering the cluster at this moment; look at the list of clusters")

    async def _remove_leftover(self, name: str, call: Call) -> None:
        """Removes the Secret that an earlier registration of the same cluster has left. Refuses if it is in use."""
        secret = await self._dependencies.secrets.read(name, timeout=patience(call))
        if secret is None:
            return
        owner = await self._global_cluster.clusters.read(secret.cluster, call) if secret.cluster else None
        if owner is not None and owner.spec.credentials.name == name:
            raise AlreadyExists(
                f"the cluster is registered already, as {owner.metadata.name}: use that, or remove it first"
            )
        if secret.is_being_registered(self._dependencies.clock.wall()):
            raise Aborted(
                f"the cluster is being registered at this moment, as {secret.cluster}; if that was interrupted, try "
                "again in two minutes"
            )
        await self._dependencies.secrets.remove(secret, timeout=patience(call))

    async def _create(
        self, request: CreateClusterRequest, spec: ClusterSpec, secret: CredentialSecret, call: Call
    ) -> SeenCluster:
        wanted: dict[str, Any] = {
            "metadata": {"name": request.name, "labels": dict(request.labels)},
            "spec": {**spec_fields(spec), "credentials": {"name": secret.metadata.name}},
        }
        try:
            return await self._global_cluster.client.typed(SeenCluster).create(
                self._global_cluster.clusters.resource,
                wanted,
                field_manager=FIELD_MANAGER,
                timeout=patience(call),
            )
        except KubeRefusal as refusal:
            # A refusal means that no Cluster was created. After any other error there may be one: the janitor finds
            # out.
            await self._dependencies.secrets.remove(secret, timeout=patience(call))
            if isinstance(refusal, Taken):
                raise AlreadyExists(f"there is a cluster {request.name} already: choose another name") from None
            raise


def refused(verified: Verified) -> ApiError:
    """The error that says why a credential was not accepted."""
    result = verified.result
    failed = next((check for check in result.checks if check.result is CheckResult.FAILED), None)
    if failed is not None and failed.type in _MISTAKES:
        return InvalidArgument(violations=[("credential", failed.message)])
    if result.known_as:
        return AlreadyExists(verified.refusal)
    return FailedPrecondition(verified.refusal)
