"""The printers of the kinds of Kubernetes and Karmada.

Other kinds have the default columns (name and creation time), or their cluster prints them.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

import msgspec

from kairship.index.tables import cluster_resources, networking, pods, workloads
from kairship.index.tables.ages import seconds
from kairship.index.tables.layout import Cell, Layout, Object, Printed

_Printer: TypeAlias = Callable[[Object], list[Cell]]

_PRINTERS: Mapping[str, tuple[tuple[str, ...], _Printer]] = {
    "pods": (pods.COLUMNS, pods.pod),
    "deployments.apps": (workloads.DEPLOYMENT, workloads.deployment),
    "replicasets.apps": (workloads.REPLICA_SET, workloads.replica_set),
    "statefulsets.apps": (workloads.STATEFUL_SET, workloads.stateful_set),
    "daemonsets.apps": (workloads.DAEMON_SET, workloads.daemon_set),
    "controllerrevisions.apps": (workloads.CONTROLLER_REVISION, workloads.controller_revision),
    "jobs.batch": (workloads.JOB, workloads.job),
    "cronjobs.batch": (workloads.CRON_JOB, workloads.cron_job),
    "poddisruptionbudgets.policy": (workloads.DISRUPTION_BUDGET, workloads.disruption_budget),
    "services": (networking.SERVICE, networking.service),
    "ingresses.networking.k8s.io": (networking.INGRESS, networking.ingress),
    "ingressclasses.networking.k8s.io": (networking.INGRESS_CLASS, networking.ingress_class),
    "networkpolicies.networking.k8s.io": (networking.NETWORK_POLICY, networking.network_policy),
    "endpoints": (networking.ENDPOINTS, networking.endpoints),
    "endpointslices.discovery.k8s.io": (networking.ENDPOINT_SLICE, networking.endpoint_slice),
    "nodes": (cluster_resources.NODE, cluster_resources.node),
    "namespaces": (cluster_resources.NAMESPACE, cluster_resources.namespace),
    "configmaps": (cluster_resources.CONFIG_MAP, cluster_resources.config_map),
    "serviceaccounts": (cluster_resources.SERVICE_ACCOUNT, cluster_resources.service_account),
    "resourcequotas": (cluster_resources.RESOURCE_QUOTA, cluster_resources.resource_quota),
    "persistentvolumes": (cluster_resources.VOLUME, cluster_resources.volume),
    "persistentvolumeclaims": (cluster_resources.VOLUME_CLAIM, cluster_resources.volume_claim),
    "storageclasses.storage.k8s.io": (cluster_resources.STORAGE_CLASS, cluster_resources.storage_class),
    "clusters.cluster.karmada.io": (cluster_resources.MEMBER, cluster_resources.member),
}
_DEFAULT_COLUMNS = ("Name", "Created At")


class _Body(msgspec.Struct):
    metadata: msgspec.Raw


class _Column(msgspec.Struct):
    name: str


_body = msgspec.json.Decoder(_Body)
_object = msgspec.json.Decoder(Object)


def built_in(kind: str, columns: bytes) -> Layout | None:
    """The layout of a kind. `columns` are those of the cluster, in JSON; None if they are not the known ones."""
    names = tuple(column.name for column in msgspec.json.decode(columns, type=Sequence[_Column]))
    if names == _DEFAULT_COLUMNS:
        return Layout(columns, partial(_printed, _created_at))
    expected, printer = _PRINTERS.get(kind, ((), _created_at))
    return Layout(columns, partial(_printed, printer)) if names == expected else None


def _printed(printer: _Printer, body: bytes) -> Printed:
    obj = _object.decode(body)
    conditions = pods.conditions_of_row(obj) if printer is pods.pod else b""
    return Printed(printer(obj), _body.decode(body).metadata, conditions)


def _created_at(obj: Object) -> list[Cell]:
    created = obj.metadata.creation_timestamp
    at = datetime.fromtimestamp(seconds(created), UTC) if created else None
    return [obj.metadata.name, f"{at:%Y-%m-%dT%H:%M:%SZ}" if at else "0001-01-01T00:00:00Z"]
