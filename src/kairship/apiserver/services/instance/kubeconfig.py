"""Kubeconfigs for people: a service account of their own in the instance, and a token of it that ends.

Nobody is handed the plane's credential. The account has the role `kairship-instance-admin`, which is what those who may
ask for a kubeconfig may do: work with everything that is spread over clusters, Secrets included. It has no way through
Karmada's cluster proxy, gives no rights to others, acts as nobody else and changes no admission and no API service.
Deleting the account in the instance takes the access away at once.
"""

import hashlib
from typing import Any

from kairship.apiserver.services.instance.part import Part
from kairship.apiserver.services.reach import FIELD_MANAGER
from kairship.gen.kairship.instance.v1alpha1.settings_pb import (
    CreateInstanceAdminKubeConfigRequest,
    CreateInstanceAdminKubeConfigResponse,
)
from kairship.kube import Client, Connection, kinds
from kairship.resources import NAMESPACE
from kairship.rpc.calls import Call, Caller, patience
from kairship.rpc.errors import Unavailable

ROLE = "kairship-instance-admin"
SHORTEST = 600
"""API servers issue no token for less."""

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_ALL = [*_READ, "create", "update", "patch", "delete", "deletecollection"]

Manifest = dict[str, Any]


class Kubeconfigs(Part):
    async def create_instance_admin_kube_config(
        self, request: CreateInstanceAdminKubeConfigRequest, call: Call
    ) -> CreateInstanceAdminKubeConfigResponse:
        await self._own.instances.require(request.instance, call)
        limit = self._settings.longest_kubeconfig
        seconds = min(request.expiration_seconds or limit, limit)
        if seconds < SHORTEST:
            call.warn(f"the kubeconfig is valid for {SHORTEST} seconds: API servers issue none for less")
            seconds = SHORTEST
        client = self._reach.instance(request.instance)
        account = account_of(call.caller)
        for manifest in manifests(account, call.caller):
            await client.apply_object(manifest, field_manager=FIELD_MANAGER, timeout=patience(call))
        token = await _token(client, account, seconds, call)
        connection = Connection(server=client.connection.server, ca=client.connection.ca, token=token)
        text = connection.to_kubeconfig(name=request.instance, user=call.caller.name or account).decode()
        return CreateInstanceAdminKubeConfigResponse(kube_config_string=text, instance=request.instance)


def account_of(caller: Caller) -> str:
    """A name for the account of a caller, whatever characters the caller's id has."""
    return f"kairship-user-{hashlib.sha256(caller.id.encode()).hexdigest()[:20]}"


def manifests(account: str, caller: Caller) -> list[Manifest]:
    """What the instance must have before a token can be issued, in this order."""
    who = {"kairship.io/user": caller.id, "kairship.io/user-name": caller.name}
    place = {"name": account, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules()},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**place, "annotations": who}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account, "annotations": who},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", **place}],
        },
    ]


def rules() -> list[Manifest]:
    """No `*`: it would include `clusters/proxy` and make everybody impersonable in the members."""
    return [
        _rule([""], ["configmaps", "secrets", "services", "persistentvolumeclaims", "namespaces", "limitranges"], _ALL),
        _rule([""], ["pods", "resourcequotas", "serviceaccounts"], _ALL),
        _rule([""], ["events", "nodes", "persistentvolumes"], _READ),
        _rule(["events.k8s.io"], ["events"], _READ),
        _rule(["apps"], ["deployments", "statefulsets", "daemonsets", "replicasets"], _ALL),
        _rule(["apps"], ["deployments/scale", "statefulsets/scale"], ["get", "update", "patch"]),
        _rule(["batch"], ["jobs", "cronjobs"], _ALL),
        _rule(["networking.k8s.io"], ["ingresses", "networkpolicies", "ingressclasses"], _ALL),
        _rule(["autoscaling"], ["horizontalpodautoscalers"], _ALL),
        _rule(["policy"], ["poddisruptionbudgets"], _ALL),
        _rule(["storage.k8s.io", "scheduling.k8s.io"], ["storageclasses", "priorityclasses"], _READ),
        _rule(["rbac.authorization.k8s.io"], ["roles", "rolebindings", "clusterroles", "clusterrolebindings"], _READ),
        _rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _ALL),
        _rule(
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
        _rule(["autoscaling.karmada.io"], ["federatedhpas", "cronfederatedhpas"], _ALL),
        _rule(["networking.karmada.io"], ["multiclusterservices", "multiclusteringresses"], _ALL),
        _rule(["apps.karmada.io"], ["workloadrebalancers"], _ALL),
        # Not Works: they carry the Secrets of everybody in clear.
        _rule(["work.karmada.io"], ["resourcebindings", "clusterresourcebindings"], _READ),
        _rule(["cluster.karmada.io"], ["clusters"], _READ),
    ]


async def _token(client: Client, account: str, seconds: int, call: Call) -> str:
    review: Manifest = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    issued = await client.create(
        kinds.SERVICE_ACCOUNTS, review, namespace=NAMESPACE, name=account, subresource="token", timeout=patience(call)
    )
    token = issued.get("status", {}).get("token")
    if not token:
        raise Unavailable("the instance has issued no token; try again")
    return str(token)


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}
