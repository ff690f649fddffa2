"""Registering clusters, and removing them.

A cluster is verified first. Then its credential becomes a Secret, then the Cluster that names it; whoever is killed in
between leaves a Secret that the janitor removes, and never a Cluster without one. What is refused leaves nothing.
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
from kairship.kpanda.services.clusters.part import Part
from kairship.kpanda.services.clusters.wishes import refuse_own_labels, spec_fields
from kairship.kpanda.verification import Verified
from kairship.kube import AlreadyExists as Taken
from kairship.kube import ApiError as KubeRefusal
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import Aborted, AlreadyExists, ApiError, FailedPrecondition, InvalidArgument
from kairship.rpc.own_kinds import SeenCluster
from kairship.rpc.refusals import told_as_precondition

_MISTAKES = (CheckType.FORM, CheckType.ADDRESS)


class Registering(Part):
    async def validate_cluster(self, request: ValidateClusterRequest, call: Call) -> Verification:
        credential = request.credential or Credential()
        if not request.cluster:
            return (await self._tools.verifier.verify(credential, endpoint=request.endpoint)).result
        cluster = await self._visibility.require(request.cluster, call)
        verified = await self._tools.verifier.verify(
            credential,
            endpoint=request.endpoint or cluster.spec.endpoint or "",
            registered=request.cluster,
            identity=cluster.status.id or "",
        )
        return verified.result

    async def create_cluster(self, request: CreateClusterRequest, call: Call) -> Cluster:
        spec = request.spec or ClusterSpec()
        refuse_own_labels(request.labels, field="labels")
        await self._refuse_taken(request.name, call)
        verified = await self._tools.verifier.verify(request.credential or Credential(), endpoint=spec.endpoint)
        if verified.kubeconfig is None:
            raise refused(verified)
        secret = await self._keep(verified.result.id, verified.kubeconfig, request.name, call)
        created = await self._create(request, spec, secret, call)
        name, uid = created.metadata.name, created.metadata.uid
        await self._tools.secrets.give_to(secret.metadata.name, cluster=name, uid=uid, timeout=patience(call))
        await self._home.clusters.written(name, created.metadata.resource_version, call)
        return self._shown(await self._settled(created, lambda cluster: cluster.status.id is not None, call))

    async def delete_cluster(self, request: DeleteClusterRequest, call: Call) -> Empty:
        cluster = await self._visibility.require(request.name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(f"cluster {request.name} stands for an instance, and goes with it")
        uid = cluster.metadata.uid
        with told_as_precondition():
            await self._home.client.delete(self._home.clusters.resource, request.name, uid=uid, timeout=patience(call))
        await self._home.clusters.deleted(request.name, uid, call)
        return Empty()

    async def _refuse_taken(self, name: str, call: Call) -> None:
        if await self._home.clusters.read(name, call) is not None:
            raise AlreadyExists(f"there is a cluster {name} already: choose another name")

    async def _keep(self, identity: str, kubeconfig: bytes, cluster: str, call: Call) -> CredentialSecret:
        name = secret_name(identity)
        for _ in range(2):
            try:
                return await self._tools.secrets.create(
                    name, cluster=cluster, kubeconfig=kubeconfig, timeout=patience(call)
                )
            except Taken:
                await self._clear_away(name, call)
        raise Aborted("the cluster is being registered by somebody else at this moment; look at the list of clusters")

    async def _clear_away(self, name: str, call: Call) -> None:
        """What an earlier registration of the same cluster has left. Refuses if it is in use."""
        secret = await self._tools.secrets.read(name, timeout=patience(call))
        if secret is None:
            return
        owner = await self._home.clusters.read(secret.cluster, call) if secret.cluster else None
        if owner is not None and owner.spec.credentials.name == name:
            raise AlreadyExists(
                f"the cluster is registered already, as {owner.metadata.name}: use that, or remove it first"
            )
        if secret.in_the_making(self._tools.clock.wall()):
            raise Aborted(
                f"the cluster is being registered at this moment, as {secret.cluster}; if that was interrupted, try "
                "again in two minutes"
            )
        await self._tools.secrets.remove(secret, timeout=patience(call))

    async def _create(
        self, request: CreateClusterRequest, spec: ClusterSpec, secret: CredentialSecret, call: Call
    ) -> SeenCluster:
        wanted: dict[str, Any] = {
            "metadata": {"name": request.name, "labels": dict(request.labels)},
            "spec": {**spec_fields(spec), "credentials": {"name": secret.metadata.name}},
        }
        try:
            return await self._home.client.create(
                self._home.clusters.resource,
                wanted,
                field_manager=FIELD_MANAGER,
                as_type=SeenCluster,
                timeout=patience(call),
            )
        except KubeRefusal as refusal:
            # Nothing came of it, for certain. After anything else there may be such a Cluster: the janitor finds out.
            await self._tools.secrets.remove(secret, timeout=patience(call))
            if isinstance(refusal, Taken):
                raise AlreadyExists(f"there is a cluster {request.name} already: choose another name") from None
            raise


def refused(verified: Verified) -> ApiError:
    """Why a credential was not accepted, as the error that it is."""
    result = verified.result
    failed = next((check for check in result.checks if check.result is CheckResult.FAILED), None)
    if failed is not None and failed.type in _MISTAKES:
        return InvalidArgument(violations=[("credential", failed.message)])
    if result.known_as:
        return AlreadyExists(verified.refusal)
    return FailedPrecondition(verified.refusal)
