"""`Cluster`: a Kubernetes cluster that container management knows, and whose objects the index holds.

A real cluster was imported by somebody and can join an instance. A virtual one stands for an instance itself, so that
the instance's own objects are collected too; it is called `k-<instance>`, made by a controller and not shown to people.

The labels and taints of a Cluster follow it into the instance that it joins: what selects clusters here selects them
there. Labels of `kairship.io` and `kpanda.io` stay here.
"""

import datetime as dt
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from .cluster_conditions import ClusterCondition
from .condition import Condition, conditions_of
from .definition import Column, Definition
from .documented import Documented
from .fields import CustomResource, Fields, always
from .rule import Rule, immutable, named_by_label
from .scalars import Count, Quantities, ReadyCount, SecretReference, Title, Uid, keyed_by, unique

VIRTUAL_PREFIX = "k-"
# Karmada's limit for the name of a cluster.
LONGEST_NAME = 48

Address = Annotated[str, Meta(max_length=512, pattern="^https://[^/?#@ ]+(/[^?#@ ]*)?$")]
Place = Annotated[str, Meta(max_length=63)]


class TaintEffect(Documented):
    """What a taint does to workloads that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule", "none is placed here"
    PREFER_NO_SCHEDULE = "PreferNoSchedule", "others are preferred for placement"
    NO_EXECUTE = "NoExecute", "none is placed here, and those that are here move away"


class Taint(Fields, frozen=True, kw_only=True):
    """Keeps workloads off the cluster that do not tolerate it."""

    key: Annotated[str, Meta(min_length=1, max_length=316)]
    """What workloads have to tolerate."""

    value: Annotated[str, Meta(max_length=63)] = ""
    """A value that a toleration can ask for."""

    effect: TaintEffect
    """What happens to workloads that do not tolerate it."""


class ClusterPhase(Documented):
    """What a cluster is doing, in one word."""

    UNKNOWN = "UNKNOWN", "it does not answer"
    CREATING = "CREATING", "it was registered and has not answered yet"
    RUNNING = "RUNNING", "it answers and its credential is valid"
    UPDATING = "UPDATING", "a new credential is being verified"
    DELETING = "DELETING", "it is being removed from container management"
    FAILED = "FAILED", "it cannot be used; its conditions say why"


class ClusterSpec(Fields, frozen=True, kw_only=True):
    """A cluster as somebody registered it."""

    RULES: ClassVar = (immutable("virtual", "it says what the cluster is"),)

    virtual: bool = False
    """Whether this stands for an instance: hidden from people, called k-<instance>. Cannot change."""

    alias: Title = ""
    """What people call the cluster."""

    credentials: SecretReference
    """The Secret in kairship-system whose key `kubeconfig` opens the cluster. A change of it is followed at once."""

    endpoint: Address | None = None
    """Where to reach the cluster's API server, if not at the address in its kubeconfig."""

    provider: Place = ""
    """Who runs the cluster: AWS_EKS, ALIYUN_ACK, HUAWEI_CCE, GENERIC … Without it the guess in the status."""

    region: Place = ""
    """Where it is. Placement can ask for it."""

    zones: Annotated[tuple[Place, ...], unique(max_length=32)] = ()
    """The zones it spans. Placement can ask for them."""

    roles: Annotated[tuple[Place, ...], unique(max_length=16)] = ()
    """What the cluster is used for, as people name it."""

    managed_by: Title = ""
    """The cluster or system that manages the life of this one."""

    taints: Annotated[tuple[Taint, ...], keyed_by("key", "effect", max_length=64)] = ()
    """Taints that the cluster has in the instance that it joins. Cordoning is a taint with effect NoSchedule."""


class ClusterCredentials(Fields, frozen=True, kw_only=True):
    """The credential in use."""

    resource_version: str
    """The version of the Secret that was verified."""

    verified_at: dt.datetime
    """When the cluster last accepted it."""

    expires_at: dt.datetime | None = None
    """When it ends, as far as it says so itself."""


class ClusterResources(Fields, frozen=True, kw_only=True):
    """Sums over the nodes."""

    capacity: Quantities = msgspec.field(default_factory=dict)
    """What the nodes have, by resource name: cpu, memory, pods …"""

    allocatable: Quantities = msgspec.field(default_factory=dict)
    """What the nodes offer to workloads."""

    allocated: Quantities = msgspec.field(default_factory=dict)
    """What the scheduled pods request."""

    used: Quantities = msgspec.field(default_factory=dict)
    """What is in use, if the cluster serves metrics."""


class CollectorStatus(Fields, frozen=True, kw_only=True):
    """How far the index is behind the cluster."""

    holder: str = ""
    """The process that collects the cluster: the one writer of its index."""

    kinds: Count
    """How many kinds are collected."""

    objects: Count
    """How many objects the index holds."""

    lag_milliseconds: Count
    """How much later than the cluster the index was when last measured."""

    measured_at: dt.datetime
    """When that was."""


class ClusterStatus(Fields, frozen=True, kw_only=True):
    """What is known of the cluster. All of it is written by container management."""

    observed_generation: Count = 0
    """The metadata.generation that this was found for."""

    phase: ClusterPhase | None = None
    """What the cluster is doing."""

    conditions: Annotated[tuple[Condition, ...], conditions_of(ClusterCondition)] = ()
    """What is the case with the cluster, aspect by aspect."""

    id: Uid | None = None
    """What makes it this cluster under any name and address: the UID of its namespace kube-system. Cannot change."""

    endpoint: str = ""
    """The address in use."""

    provider: str = ""
    """Who seems to run the cluster, to judge by its nodes."""

    kubernetes_version: str = ""
    """Version of its Kubernetes API."""

    service_cidr: str = ""
    """Address range of its Services."""

    pod_cidr: str = ""
    """Address range of its pods."""

    proxy_mode: str = ""
    """How its nodes reach Services: iptables, ipvs, nftables …"""

    nodes: ReadyCount | None = None
    """Its nodes."""

    resources: ClusterResources | None = None
    """What its nodes have, offer and give."""

    credentials: ClusterCredentials | None = None
    """The credential in use."""

    collector: CollectorStatus | None = None
    """How far the index is behind the cluster."""


class Cluster(CustomResource, frozen=True, kw_only=True):
    """A Kubernetes cluster that container management knows."""

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
    """The name of the Cluster that stands for an instance."""
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
        Column("Region", ".spec.region", "Where it is."),
        Column("Virtual", ".spec.virtual", "Whether it stands for an instance.", type="boolean"),
        Column("Age", ".metadata.creationTimestamp", "Time since registration.", type="date"),
        Column("Alias", ".spec.alias", "What people call the cluster.", wide=True),
        Column("Provider", ".spec.provider", "Who runs it.", wide=True),
        Column("Endpoint", ".status.endpoint", "Address of its API server.", wide=True),
        Column("Expires", ".status.credentials.expiresAt", "When its credential ends.", wide=True),
        Column("Lag", ".status.collector.lagMilliseconds", "Milliseconds behind.", type="integer", wide=True),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why it is ready or not.", wide=True),
    ),
    selectable=(".spec.virtual", ".status.phase"),
)
