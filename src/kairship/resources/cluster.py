"""`Cluster`: a Kubernetes cluster that container management manages, and whose objects are in the index.

A real cluster was registered by a user and can join an instance. A virtual (hidden) cluster represents an instance
itself, so that the instance's own objects are collected too. It is called `k-<instance>`, is created by a controller,
and is not shown to users.

The labels and taints of a Cluster are copied to the instance that it joins, so a selector of clusters works in both.
Labels of `kairship.io` and `kpanda.io` are not copied.
"""

import datetime as dt
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from kairship.resources.cluster_conditions import ClusterCondition
from kairship.resources.condition import Condition, conditions_of
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import DocumentedEnum
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import Rule, immutable, named_by_label
from kairship.resources.schema.scalars import (
    Count,
    Quantities,
    ReadyCount,
    SecretReference,
    Title,
    Uid,
    keyed_by,
    unique,
)

VIRTUAL_PREFIX = "k-"
# Karmada's limit for the name of a cluster.
LONGEST_NAME = 48

Address = Annotated[str, Meta(max_length=512, pattern="^https://[^/?#@ ]+(/[^?#@ ]*)?$")]
LabelValue = Annotated[str, Meta(max_length=63)]
"""A provider, region, zone or role, which has the length of a label value."""


class TaintEffect(DocumentedEnum):
    """What a taint does to workloads that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule", "they are not scheduled to the cluster"
    PREFER_NO_SCHEDULE = "PreferNoSchedule", "they are scheduled to other clusters if possible"
    NO_EXECUTE = "NoExecute", "they are not scheduled to the cluster, and running ones move to other clusters"


class Taint(Fields, frozen=True, kw_only=True):
    """Keeps workloads that do not tolerate it off the cluster."""

    key: Annotated[str, Meta(min_length=1, max_length=316)]
    """The key that a toleration must have."""

    value: Annotated[str, Meta(max_length=63)] = ""
    """The value that a toleration can require."""

    effect: TaintEffect
    """What the taint does to workloads that do not tolerate it."""


class ClusterPhase(DocumentedEnum):
    """What a cluster is doing, in one word."""

    UNKNOWN = "UNKNOWN", "it does not answer"
    CREATING = "CREATING", "it was registered and has not answered yet"
    RUNNING = "RUNNING", "it answers and its credential is valid"
    UPDATING = "UPDATING", "a new credential is being verified"
    DELETING = "DELETING", "it is being removed from container management"
    FAILED = "FAILED", "it cannot be used; its conditions say why"


class ClusterSpec(Fields, frozen=True, kw_only=True):
    """A cluster as a user registered it."""

    RULES: ClassVar = (immutable("virtual", "it says what the cluster is"),)

    virtual: bool = False
    """Whether the cluster represents an instance: it is hidden from users and called k-<instance>. Cannot change."""

    alias: Title = ""
    """Display name of the cluster."""

    credentials: SecretReference
    """The Secret in kairship-system whose key `kubeconfig` gives access to the cluster. Changes take effect at once."""

    endpoint: Address | None = None
    """Address of the cluster's API server, if it differs from the address in the kubeconfig."""

    provider: LabelValue = ""
    """Provider of the cluster: AWS_EKS, ALIYUN_ACK, HUAWEI_CCE, GENERIC … By default the detected one in the status."""

    region: LabelValue = ""
    """Region of the cluster. Placements can select it."""

    zones: Annotated[tuple[LabelValue, ...], unique(max_length=32)] = ()
    """Zones of the cluster. Placements can select them."""

    roles: Annotated[tuple[LabelValue, ...], unique(max_length=16)] = ()
    """What the cluster is used for, in the user's own words."""

    managed_by: Title = ""
    """The cluster or system that manages the lifecycle of this one."""

    taints: Annotated[tuple[Taint, ...], keyed_by("key", "effect", max_length=64)] = ()
    """Taints that the cluster gets in the instance that it joins. Cordoning is a taint with effect NoSchedule."""


class ClusterCredentials(Fields, frozen=True, kw_only=True):
    """The credential in use."""

    resource_version: str
    """The version of the Secret that was verified."""

    verified_at: dt.datetime
    """When the cluster last accepted it."""

    expires_at: dt.datetime | None = None
    """When the credential expires, if it contains that date."""


class ClusterResources(Fields, frozen=True, kw_only=True):
    """Sums over the nodes."""

    capacity: Quantities = msgspec.field(default_factory=dict)
    """Capacity of the nodes, by resource name: cpu, memory, pods …"""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    """Allocatable resources of the nodes."""

    allocated: Quantities = msgspec.field(default_factory=dict)
    """Requests of the scheduled pods."""

    used: Quantities = msgspec.field(default_factory=dict)
    """Resources in use, if the cluster serves metrics."""


class CollectorStatus(Fields, frozen=True, kw_only=True):
    """How far the index is behind the cluster."""

    holder: str = ""
    """The process that collects the cluster. It is the only writer of the cluster's index."""

    kinds: Count
    """Number of kinds that are collected."""

    objects: Count
    """Number of objects in the index."""

    lag_milliseconds: Count
    """How far the index was behind the cluster when this was last measured."""

    measured_at: dt.datetime
    """When the lag was measured."""


class ClusterStatus(Fields, frozen=True, kw_only=True):
    """The observed state of the cluster. Container management writes all of it."""

    observed_generation: Count = 0
    """The metadata.generation that this status was observed for."""

    phase: ClusterPhase | None = None
    """What the cluster is doing."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(ClusterCondition)] = ()
    """Conditions of the cluster."""

    id: Uid | None = None
    """Identity of the cluster under any name and address: the UID of its namespace kube-system. Cannot change."""

    endpoint: str = ""
    """The address in use."""

    provider: str = ""
    """Provider of the cluster, as detected from its nodes."""

    kubernetes_version: str = ""
    """Version of its Kubernetes API."""

    service_cidr: str = ""
    """Address range of its Services."""

    pod_cidr: str = ""
    """Address range of its pods."""

    proxy_mode: str = ""
    """Mode of its kube-proxy: iptables, ipvs, nftables …"""

    nodes: ReadyCount | None = None
    """Its nodes."""

    resources: ClusterResources | None = None
    """Resources of its nodes."""

    credentials: ClusterCredentials | None = None
    """The credential in use."""

    collector: CollectorStatus | None = None
    """How far the index is behind the cluster."""


class Cluster(CustomResource, frozen=True, kw_only=True):
    """A Kubernetes cluster that container management manages."""

    RULES: ClassVar = (
        Rule(
            f"self.spec.virtual == self.metadata.name.startsWith('{VIRTUAL_PREFIX}')",
            f"names that begin with '{VIRTUAL_PREFIX}' are those of virtual clusters, which stand for instances",
        ),
        Rule(
            f"self.spec.virtual || self.metadata.name.size() <= {LONGEST_NAME}",
            f"the name of a cluster has at most {LONGEST_NAME} characters, as Karmada wants it",
        ),
        named_by_label("a cluster", longest=63),
        Rule(
            "!has(oldSelf.status) || !has(oldSelf.status.id) "
            "|| (has(self.status) && has(self.status.id) && self.status.id == oldSelf.status.id)",
            "this name belongs to the cluster whose id is known; register another cluster under another name",
        ),
    )

    api_version: Literal["cluster.kpanda.io/v1alpha1"] = always("cluster.kpanda.io/v1alpha1")
    kind: Literal["Cluster"] = always("Cluster")
    spec: ClusterSpec
    status: ClusterStatus = ClusterStatus()


def virtual_cluster_name(instance: str) -> str:
    """The name of the virtual Cluster that represents an instance."""
    return f"{VIRTUAL_PREFIX}{instance}"


CLUSTERS = Definition(
    resource=Cluster,
    plural="clusters",
    short_names=("kcl",),
    conditions=ClusterCondition,
    columns=(
        Column("Phase", ".status.phase", "What the cluster is doing."),
        Column("Version", ".status.kubernetesVersion", "Version of its Kubernetes API."),
        Column("Nodes", ".status.nodes.total", "Its nodes.", type="integer"),
        Column("Ready", ".status.nodes.ready", "Its nodes that are ready.", type="integer"),
        Column("Region", ".spec.region", "Region of the cluster."),
        Column("Virtual", ".spec.virtual", "Whether it represents an instance.", type="boolean"),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
        Column("Alias", ".spec.alias", "Display name of the cluster.", wide=True),
        Column("Provider", ".spec.provider", "Provider of the cluster.", wide=True),
        Column("Endpoint", ".status.endpoint", "Address of its API server.", wide=True),
        Column("Expires", ".status.credentials.expiresAt", "When its credential expires.", wide=True),
        Column("Lag", ".status.collector.lagMilliseconds", "Lag of the index in ms.", type="integer", wide=True),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why it is ready or not.", wide=True),
    ),
    selectable=(".spec.virtual", ".status.phase"),
)
