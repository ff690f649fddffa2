"""Kubeconfigs for people: a service account of their own in the instance, and a token of it that ends.

The account has the role `kairship-instance-admin`, which is what those who may ask for a kubeconfig may do: work with
everything that is spread over clusters, Secrets included. It has no way through Karmada's cluster proxy, gives no
rights to others, acts as nobody else and changes no admission and no API service.
"""

from kairship.apiserver.services.instance.part import Part
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    CreateInstanceAdminKubeConfigRequest,
    CreateInstanceAdminKubeConfigResponse,
)
from kairship.instances.account_tokens import SHORTEST
from kairship.instances.accounts import Manifest, Person, Role, access_rule, issue
from kairship.rpc.calls import Call, patience

ROLE = "kairship-instance-admin"
_READ = ["get", "list", "watch"]
_ALL = [*_READ, "create", "update", "patch", "delete", "deletecollection"]


class Kubeconfigs(Part):
    async def create_instance_admin_kube_config(
        self, request: CreateInstanceAdminKubeConfigRequest, call: Call
    ) -> CreateInstanceAdminKubeConfigResponse:
        await self._own.instances.require(request.instance, call)
        limit = self._settings.longest_kubeconfig
        seconds = min(request.expiration_seconds or limit, limit)
        if seconds < SHORTEST:
            call.warn(f"the kubeconfig is valid for {SHORTEST} seconds: API servers issue none for less")
        issued = await issue(
            self._reach.instance(request.instance),
            Person(call.caller.id, call.caller.name),
            Role(ROLE, rules()),
            cluster=request.instance,
            seconds=seconds,
            timeout=patience(call),
        )
        return CreateInstanceAdminKubeConfigResponse(
            kube_config_string=issued.kubeconfig.decode(), instance=request.instance
        )


def rules() -> list[Manifest]:
    """No `*`: it would include `clusters/proxy` and make everybody impersonable in the members."""
    return [
        access_rule(
            [""], ["configmaps", "secrets", "services", "persistentvolumeclaims", "namespaces", "limitranges"], _ALL
        ),
        access_rule([""], ["pods", "resourcequotas", "serviceaccounts"], _ALL),
        access_rule([""], ["events", "nodes", "persistentvolumes"], _READ),
        access_rule(["events.k8s.io"], ["events"], _READ),
        access_rule(["apps"], ["deployments", "statefulsets", "daemonsets", "replicasets"], _ALL),
        access_rule(["apps"], ["deployments/scale", "statefulsets/scale"], ["get", "update", "patch"]),
        access_rule(["batch"], ["jobs", "cronjobs"], _ALL),
        access_rule(["networking.k8s.io"], ["ingresses", "networkpolicies", "ingressclasses"], _ALL),
        access_rule(["autoscaling"], ["horizontalpodautoscalers"], _ALL),
        access_rule(["policy"], ["poddisruptionbudgets"], _ALL),
        access_rule(["storage.k8s.io", "scheduling.k8s.io"], ["storageclasses", "priorityclasses"], _READ),
        access_rule(
            ["rbac.authorization.k8s.io"], ["roles", "rolebindings", "clusterroles", "clusterrolebindings"], _READ
        ),
        access_rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _ALL),
        access_rule(
            ["policy.karmada.io"],
            [
                "propagationpolicies",
                "clusterpropagationpolicies",
                "overridepolicies",
                "clusteroverridepolicies",
                "clustertaintpolicies",
                "federatedresourcequotas",
            ],
            _ALL,
        ),
        access_rule(["autoscaling.karmada.io"], ["federatedhpas", "cronfederatedhpas"], _ALL),
        access_rule(["networking.karmada.io"], ["multiclusterservices", "multiclusteringresses"], _ALL),
        access_rule(["apps.karmada.io"], ["workloadrebalancers"], _ALL),
        # Not Works: they carry the Secrets of everybody in clear.
        access_rule(["work.karmada.io"], ["resourcebindings", "clusterresourcebindings"], _READ),
        access_rule(["cluster.karmada.io"], ["clusters"], _READ),
    ]
