"""The promotion of a Deployment from a member cluster to the instance, with the ConfigMaps and Secrets that it uses.

The resource templates are created first, and the policy that propagates them to that one cluster last. Nothing is
propagated before the policy exists, so everything before it can be undone without touching the member. Karmada then
adopts the objects in the member. Their pods stay, because the pod template is the same. What the instance has already
is left as it is.

Whoever can write in the member chooses the names in a Deployment. So names are checked like those of callers, and
everything in the member is read as the caller: nobody gets a copy of what they could not read there themselves.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from protobuf.wkt import Empty

from kairship.apiserver.services.instance_clients import FIELD_MANAGER, InstanceClients, MemberResource
from kairship.apiserver.services.resources import ObjectAccess
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import PromoteMemberClusterDeploymentRequest
from kairship.kube import AlreadyExists as Exists
from kairship.kube import Client, KubeError, Object, Resource, is_path_segment, kinds
from kairship.kube import NotFound as Missing
from kairship.rpc.admission_errors import admission_as_invalid_argument
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import AlreadyExists, FailedPrecondition, NotFound
from kairship.rpc.views import LAST_APPLIED

_MANAGED = "karmada.io/managed"
_DROPPED_ANNOTATIONS = (LAST_APPLIED, "deployment.kubernetes.io/revision")
_CLUSTER_BOUND_SECRETS = ("kubernetes.io/service-account-token",)
_CLUSTER_BOUND_SERVICE_FIELDS = ("clusterIP", "clusterIPs", "healthCheckNodePort")
_WRITTEN = (kinds.DEPLOYMENTS, kinds.SERVICES, kinds.CONFIGMAPS, kinds.SECRETS, kinds.PROPAGATION_POLICIES)

Reference = tuple[Resource, str]


async def promote_deployment(access: ObjectAccess, request: PromoteMemberClusterDeploymentRequest, call: Call) -> Empty:
    promotion = _Promotion(access.clients, request, call)
    deployment = await promotion.get_from_member(kinds.DEPLOYMENTS, request.name)
    if deployment is None:
        raise NotFound(f"cluster {request.cluster} has no Deployment {request.namespace}/{request.name}")
    if (deployment["metadata"].get("labels") or {}).get(_MANAGED) == "true":
        raise FailedPrecondition(
            f"Deployment {request.name} is in cluster {request.cluster} because an instance propagates it there already"
        )
    if await promotion.is_in_instance(kinds.DEPLOYMENTS, request.name):
        raise AlreadyExists(f"instance {request.instance} has a Deployment {request.namespace}/{request.name} already")
    wanted = [(kinds.DEPLOYMENTS, deployment)]
    for service in request.services:
        found = await promotion.get_from_member(kinds.SERVICES, service)
        if found is None:
            raise NotFound(f"cluster {request.cluster} has no Service {request.namespace}/{service}")
        wanted.append((kinds.SERVICES, found))
    for resource, name in sorted(set(references_of(deployment)), key=lambda each: (each[0].kind, each[1])):
        if not is_path_segment(name):
            raise FailedPrecondition(
                f"Deployment {request.name} of cluster {request.cluster} refers to {resource.kind} {name[:253]!r}, "
                "which cannot be a name; correct the Deployment in the cluster first"
            )
        found = await promotion.get_from_member(resource, name)
        if found is not None and found.get("type") not in _CLUSTER_BOUND_SECRETS:
            wanted.append((resource, found))
    await promotion.write(request.name, wanted)
    await access.writes.several(request.instance, _WRITTEN, call)
    return Empty()


class _Promotion:
    def __init__(self, clients: InstanceClients, request: PromoteMemberClusterDeploymentRequest, call: Call) -> None:
        self._clients = clients
        self._instance = request.instance
        self._client = clients.instance(request.instance)
        self._cluster = request.cluster
        self._namespace = request.namespace
        self._call = call
        self._created: list[tuple[Resource, Object]] = []

    async def get_from_member(self, resource: Resource, name: str) -> Object | None:
        """Raises `PermissionDenied` if the caller could not read it in the member directly."""
        at_member = MemberResource.at(self._cluster, resource)
        return await self._clients.as_caller(
            self._instance, self._call, lambda client: self._find(client, at_member, name)
        )

    async def is_in_instance(self, resource: Resource, name: str) -> bool:
        return await self._find(self._client, resource, name) is not None

    async def write(self, name: str, wanted: list[tuple[Resource, Object]]) -> None:
        """Writes everything, or nothing."""
        try:
            await self._ensure_namespace()
            for resource, obj in wanted:
                await self._create(resource, template_of(obj, resource))
            with admission_as_invalid_argument():
                await self._write(kinds.PROPAGATION_POLICIES, policy_for(name, self._cluster, self._created))
        except BaseException:
            # This includes a client that has gone: the shield lets the undoing go on without it.
            await asyncio.shield(self._undo())
            raise

    async def _ensure_namespace(self) -> None:
        try:
            await self._client.get(kinds.NAMESPACES, self._namespace, timeout=patience(self._call))
        except Missing:
            with suppress(Exists):
                await self._write(kinds.NAMESPACES, {"metadata": {"name": self._namespace}})

    async def _create(self, resource: Resource, template: Object) -> None:
        try:
            created = await self._write(resource, template)
        except Exists:
            if resource is kinds.DEPLOYMENTS:
                raise
            return  # what the instance has already is left as it is, and left out of the policy
        self._created.append((resource, created))

    async def _write(self, resource: Resource, obj: Object) -> Object:
        return await self._clients.as_caller(
            self._instance,
            self._call,
            lambda client: client.create(
                resource,
                obj,
                namespace=self._namespace if resource.namespaced else None,
                field_manager=FIELD_MANAGER,
                timeout=patience(self._call),
            ),
        )

    async def _undo(self) -> None:
        for resource, obj in reversed(self._created):
            metadata = obj["metadata"]
            try:
                await self._client.delete(
                    resource, metadata["name"], namespace=self._namespace, uid=metadata["uid"], missing_ok=True
                )
            except KubeError:
                continue  # the rest is deleted all the same

    async def _find(self, client: Client, resource: Resource, name: str) -> Object | None:
        try:
            return await client.get(resource, name, namespace=self._namespace, timeout=patience(self._call))
        except Missing:
            return None


def references_of(deployment: Object) -> Iterator[Reference]:
    """Yields the ConfigMaps and Secrets that the pod template names."""
    pod = deployment["spec"]["template"].get("spec") or {}
    for each in pod.get("imagePullSecrets") or ():
        yield from _reference(kinds.SECRETS, each)
    for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]:
        for source in container.get("envFrom") or ():
            yield from _reference(kinds.CONFIGMAPS, source.get("configMapRef"))
            yield from _reference(kinds.SECRETS, source.get("secretRef"))
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            yield from _reference(kinds.CONFIGMAPS, source.get("configMapKeyRef"))
            yield from _reference(kinds.SECRETS, source.get("secretKeyRef"))
    for volume in pod.get("volumes") or ():
        for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
            yield from _reference(kinds.CONFIGMAPS, source.get("configMap"))
            yield from _reference(kinds.SECRETS, source.get("secret"))


def template_of(obj: Object, resource: Resource) -> Object:
    """Returns the resource template of an object in a member: the object without what that cluster has added to it."""
    metadata = obj["metadata"]
    annotations = {
        key: text for key, text in (metadata.get("annotations") or {}).items() if key not in _DROPPED_ANNOTATIONS
    }
    content = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    if resource is kinds.SERVICES:
        content["spec"] = {
            key: value for key, value in content["spec"].items() if key not in _CLUSTER_BOUND_SERVICE_FIELDS
        }
    labels = metadata.get("labels") or {}
    return {"metadata": {"name": metadata["name"], "labels": labels, "annotations": annotations}, **content}


def policy_for(name: str, cluster: str, created: list[tuple[Resource, Object]]) -> Object:
    """Returns the policy that propagates the promoted objects to their cluster and has Karmada adopt them there."""
    return {
        "metadata": {"name": f"promote-{name}"},
        "spec": {
            "conflictResolution": "Overwrite",
            "resourceSelectors": [
                {"apiVersion": resource.api_version, "kind": resource.kind, "name": obj["metadata"]["name"]}
                for resource, obj in created
            ],
            "placement": {"clusterAffinity": {"clusterNames": [cluster]}},
        },
    }


def _reference(resource: Resource, reference: Any) -> Iterator[Reference]:
    """A Secret volume has its name in `secretName`, every other reference in `name`."""
    if isinstance(reference, dict) and (name := reference.get("name") or reference.get("secretName")):
        yield resource, str(name)
