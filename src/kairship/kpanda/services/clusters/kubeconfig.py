"""Kubeconfigs of clusters for users: each user gets a service account in the cluster, and a token that expires.

The account has the role `kairship-cluster-operator`: it can change everything that runs in the cluster, Secrets
included, and read nodes and roles. It cannot grant rights, impersonate, or change admission, API services and the
plane's own credentials.
"""

from kairship.gen.kairship.kpanda.v1alpha1.registry_pb import (
    CreateClusterKubeconfigRequest,
    CreateClusterKubeconfigResponse,
)
from kairship.instances.personal_kubeconfigs import Manifest, Person, Role, issue_kubeconfig, policy_rule
from kairship.kpanda.services.cluster_client import client_of
from kairship.kpanda.services.clusters.base import ClustersBase
from kairship.rpc.calls import Call, patience
from kairship.rpc.errors import FailedPrecondition

_READ = ["get", "list", "watch"]
_ALL = [*_READ, "create", "update", "patch", "delete", "deletecollection"]


class ClusterKubeconfigs(ClustersBase):
    async def create_cluster_kubeconfig(
        self, request: CreateClusterKubeconfigRequest, call: Call
    ) -> CreateClusterKubeconfigResponse:
        cluster = await self._visibility.require(request.name, call)
        if cluster.spec.virtual:
            raise FailedPrecondition(
                f"cluster {request.name} stands for an instance: create a kubeconfig of the instance instead"
            )
        limit = self._dependencies.limits.longest_kubeconfig
        seconds = min(request.expiration_seconds or limit, limit)
        issued = await issue_kubeconfig(
            client_of(self._dependencies.pool, request.name),
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
    """The rules name every resource, because `*` would include those that grant rights."""
    return [
        policy_rule([""], ["configmaps", "secrets", "services", "endpoints", "persistentvolumeclaims"], _ALL),
        policy_rule([""], ["pods", "replicationcontrollers", "resourcequotas", "limitranges", "namespaces"], _ALL),
        policy_rule([""], ["pods/log", "pods/status"], _READ),
        policy_rule([""], ["pods/exec", "pods/attach", "pods/portforward"], ["get", "create"]),
        policy_rule([""], ["pods/eviction"], ["create"]),
        policy_rule([""], ["serviceaccounts", "events", "nodes", "persistentvolumes"], _READ),
        policy_rule(["events.k8s.io"], ["events"], _READ),
        policy_rule(["apps"], ["deployments", "statefulsets", "daemonsets", "replicasets"], _ALL),
        policy_rule(["apps"], ["deployments/scale", "statefulsets/scale"], ["get", "update", "patch"]),
        policy_rule(["batch"], ["jobs", "cronjobs"], _ALL),
        policy_rule(["networking.k8s.io"], ["ingresses", "networkpolicies", "ingressclasses"], _ALL),
        policy_rule(["autoscaling"], ["horizontalpodautoscalers"], _ALL),
        policy_rule(["policy"], ["poddisruptionbudgets"], _ALL),
        policy_rule(["discovery.k8s.io"], ["endpointslices"], _READ),
        policy_rule(["storage.k8s.io", "scheduling.k8s.io"], ["storageclasses", "priorityclasses"], _READ),
        policy_rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _READ),
        policy_rule(["metrics.k8s.io"], ["nodes", "pods"], ["get", "list"]),
        policy_rule(
            ["rbac.authorization.k8s.io"], ["roles", "rolebindings", "clusterroles", "clusterrolebindings"], _READ
        ),
    ]


ROLE = Role("kairship-cluster-operator", tuple(_rules()))
