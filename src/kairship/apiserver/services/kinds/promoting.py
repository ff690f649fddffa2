"""Taking a Deployment of a member cluster over into the instance, with the ConfigMaps and Secrets that it uses.

Templates come first, a policy that places them in that one cluster comes last: until it exists nothing is placed, so
everything before can be undone without touching the member. Karmada then takes over what is there. The pods stay,
because their template is the same. What the instance has already is left as it is.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from kairship.apiserver.services.reach import FIELD_MANAGER, InMember, Reach
from kairship.gen.kairship.apps.v1alpha1.deployment_pb import PromoteMemberClusterDeploymentRequest
from kairship.kube import AlreadyExists as Exists
from kairship.kube import KubeError, Object, Resource, kinds
from kairship.kube import NotFound as Missing
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import AlreadyExists, FailedPrecondition, NotFound
from kairship.rpc.refusals import told_as_mistake
from kairship.rpc.views import LAST_APPLIED

_MANAGED = "karmada.io/managed"
_NOT_TAKEN = (LAST_APPLIED, "deployment.kubernetes.io/revision")
_OF_THE_CLUSTER = ("kubernetes.io/service-account-token",)
_ADDRESSES = ("clusterIP", "clusterIPs", "healthCheckNodePort")

Reference = tuple[Resource, str]


async def promote_deployment(reach: Reach, request: PromoteMemberClusterDeploymentRequest, call: Call) -> None:
    promotion = _Promotion(reach, request, call)
    deployment = await promotion.in_member(kinds.DEPLOYMENTS, request.name)
    if deployment is None:
        raise NotFound(f"cluster {request.cluster} has no Deployment {request.namespace}/{request.name}")
    if (deployment["metadata"].get("labels") or {}).get(_MANAGED) == "true":
        raise FailedPrecondition(f"Deployment {request.name} was placed in {request.cluster} by an instance already")
    if await promotion.in_instance(kinds.DEPLOYMENTS, request.name):
        raise AlreadyExists(f"instance {request.instance} has a Deployment {request.namespace}/{request.name} already")
    wanted = [(kinds.DEPLOYMENTS, deployment)]
    for service in request.services:
        found = await promotion.in_member(kinds.SERVICES, service)
        if found is None:
            raise NotFound(f"cluster {request.cluster} has no Service {request.namespace}/{service}")
        wanted.append((kinds.SERVICES, found))
    for resource, name in sorted(set(used_by(deployment)), key=lambda each: (each[0].kind, each[1])):
        found = await promotion.in_member(resource, name)
        if found is not None and found.get("type") not in _OF_THE_CLUSTER:
            wanted.append((resource, found))
    await promotion.carry_out(request.name, wanted)


class _Promotion:
    def __init__(self, reach: Reach, request: PromoteMemberClusterDeploymentRequest, call: Call) -> None:
        self._reach = reach
        self._instance = request.instance
        self._client = reach.instance(request.instance)
        self._cluster = request.cluster
        self._namespace = request.namespace
        self._call = call
        self._created: list[tuple[Resource, Object]] = []

    async def in_member(self, resource: Resource, name: str) -> Object | None:
        return await self._find(InMember.at(self._cluster, resource), name)

    async def in_instance(self, resource: Resource, name: str) -> bool:
        return await self._find(resource, name) is not None

    async def carry_out(self, name: str, wanted: list[tuple[Resource, Object]]) -> None:
        """All of it or nothing."""
        try:
            await self._ensure_namespace()
            for resource, obj in wanted:
                await self._create(resource, template_of(obj, resource))
            with told_as_mistake():
                await self._write(kinds.PROPAGATION_POLICIES, policy_for(name, self._cluster, self._created))
        except BaseException:
            # Also when the caller has gone: then the undoing goes on without it.
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
            return  # it is left as it is, and left out of the policy
        self._created.append((resource, created))

    async def _write(self, resource: Resource, obj: Object) -> Object:
        return await self._reach.acting(
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
                continue  # the others are to go all the same

    async def _find(self, resource: Resource, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace=self._namespace, timeout=patience(self._call))
        except Missing:
            return None


def used_by(deployment: Object) -> Iterator[Reference]:
    """The ConfigMaps and Secrets that the pods name."""
    pod = deployment["spec"]["template"].get("spec") or {}
    for each in pod.get("imagePullSecrets") or ():
        yield from _named(kinds.SECRETS, each)
    for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]:
        for source in container.get("envFrom") or ():
            yield from _named(kinds.CONFIGMAPS, source.get("configMapRef"))
            yield from _named(kinds.SECRETS, source.get("secretRef"))
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            yield from _named(kinds.CONFIGMAPS, source.get("configMapKeyRef"))
            yield from _named(kinds.SECRETS, source.get("secretKeyRef"))
    for volume in pod.get("volumes") or ():
        for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
            yield from _named(kinds.CONFIGMAPS, source.get("configMap"))
            yield from _named(kinds.SECRETS, source.get("secret"))


def template_of(obj: Object, resource: Resource) -> Object:
    """What an object of a member is in the instance: without what the member made of it."""
    metadata = obj["metadata"]
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key not in _NOT_TAKEN}
    content = {key: part for key, part in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    if resource is kinds.SERVICES:
        content["spec"] = {key: part for key, part in content["spec"].items() if key not in _ADDRESSES}
    labels = metadata.get("labels") or {}
    return {"metadata": {"name": metadata["name"], "labels": labels, "annotations": annotations}, **content}


def policy_for(name: str, cluster: str, created: list[tuple[Resource, Object]]) -> Object:
    """Places exactly what was taken over where it was, and lets Karmada take hold of what is there."""
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


def _named(resource: Resource, reference: Any) -> Iterator[Reference]:
    """A Secret as a volume is named otherwise than everywhere else."""
    if isinstance(reference, dict) and (name := reference.get("name") or reference.get("secretName")):
        yield resource, str(name)
