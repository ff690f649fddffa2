"""Kubeconfigs of clusters for people: an account of their own in the cluster, and a token of it that ends.

The account has the role `kairship-cluster-operator`: it works with everything that runs in the cluster, Secrets
included, and sees nodes and roles. It gives no rights to others, acts as nobody else, and changes no admission, no API
service and no credential of the plane's own.
"""

from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    CreateClusterKubeconfigRequest,
    CreateClusterKubeconfigResponse,
)
from kairship.instances.accounts import Manifest, Person, Role, access_rule, issue
from kairship.kpanda.services.clusters.part import Part
from kairship.kpanda.services.reach import client_of
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition

_READ = ["get", "list", "watch"]
_ALL = [*_READ, "create", "update", "patch", "delete", "deletecollection"]


class Kubeconfigs(Part):
    async def create_cluster_kubeconfig(
        self, request: CreateClusterKubeconfigRequest, call: Call
    ) -> CreateClusterKubeconfigResponse:
        cluster = await self._visibility.require(request.name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(f"cluster {request.name} stands for an instance: ask for that one's kubeconfig")
        limit = self._tools.settings.longest_kubeconfig
        seconds = min(request.expiration_seconds or limit, limit)
        issued = await issue(
            client_of(self._tools.pool, request.name),
            Person(call.caller.id, call.caller.name),
            ROLE,
            cluster=request.name,
            seconds=seconds,
            timeout=patience(call),
        )
        return CreateClusterKubeconfigResponse(
            kubeconfig=issued.kubeconfig.decode(), expires_at=int(issued.expires_at.timestamp())
        )


def _rules() -> list[Manifest]:
    """No `*`: it would include what gives rights."""
    return [
        access_rule([""], ["configmaps", "secrets", "services", "endpoints", "persistentvolumeclaims"], _ALL),
        access_rule([""], ["pods", "replicationcontrollers", "resourcequotas", "limitranges", "namespaces"], _ALL),
        access_rule([""], ["pods/log", "pods/status"], _READ),
        access_rule([""], ["pods/exec", "pods/attach", "pods/portforward"], ["get", "create"]),
        access_rule([""], ["pods/eviction"], ["create"]),
        access_rule([""], ["serviceaccounts", "events", "nodes", "persistentvolumes"], _READ),
        access_rule(["events.k8s.io"], ["events"], _READ),
        access_rule(["apps"], ["deployments", "statefulsets", "daemonsets", "replicasets"], _ALL),
        access_rule(["apps"], ["deployments/scale", "statefulsets/scale"], ["get", "update", "patch"]),
        access_rule(["batch"], ["jobs", "cronjobs"], _ALL),
        access_rule(["networking.k8s.io"], ["ingresses", "networkpolicies", "ingressclasses"], _ALL),
        access_rule(["autoscaling"], ["horizontalpodautoscalers"], _ALL),
        access_rule(["policy"], ["poddisruptionbudgets"], _ALL),
        access_rule(["discovery.k8s.io"], ["endpointslices"], _READ),
        access_rule(["storage.k8s.io", "scheduling.k8s.io"], ["storageclasses", "priorityclasses"], _READ),
        access_rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _READ),
        access_rule(["metrics.k8s.io"], ["nodes", "pods"], ["get", "list"]),
        access_rule(
            ["rbac.authorization.k8s.io"], ["roles", "rolebindings", "clusterroles", "clusterrolebindings"], _READ
        ),
    ]


ROLE = Role("kairship-cluster-operator", tuple(_rules()))
