"""`Instance`: a Karmada control plane that the plane creates or adopts, maintains and deletes.

Backups are declarative: `spec.backups` is the set of backups that should exist. A new name is backed up once, with
retries until it succeeds; when a name is removed, its backup is deleted. So a lost or repeated event loses or doubles
nothing, and several owners can each apply backups of their own. A restore is an action and not a state, and therefore
has a `request`: each value is executed exactly once, and `status.restore` has the last one.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from kairship.resources.instance_conditions import InstanceCondition
from kairship.resources.instance_status import InstanceStatus
from kairship.resources.schema.definition import Column, Definition
from kairship.resources.schema.documented_enum import DocumentedEnum
from kairship.resources.schema.fields import CustomResource, Fields, always
from kairship.resources.schema.rule import Rule, immutable, named_by_label
from kairship.resources.schema.scalars import (
    Identifier,
    KarmadaVersion,
    Label,
    Seconds,
    SecretReference,
    Subdomain,
    Title,
    keyed_by,
)

RESERVED_NAME = "config"
LONGEST_NAME = 60
LONGEST_OPERATOR_NAME = 34


class DriverName(DocumentedEnum):
    """How the control plane of an instance is run."""

    LOCAL = "local", "as supervised processes on the machine of the plane"
    OPERATOR = "operator", "by the karmada-operator, in the host cluster"
    EXTERNAL = "external", "outside the plane: an existing Karmada is adopted"


class HostCluster(Fields, frozen=True, kw_only=True):
    """The cluster in which the control plane runs."""

    name: Subdomain
    """Name of a Cluster of container management."""


class Failover(Fields, frozen=True, kw_only=True):
    """When a member cluster counts as lost, and how its workloads move to others."""

    enabled: bool = False
    """Whether workloads move away from a member cluster that is lost."""

    cluster_monitor_period_seconds: Seconds = 5
    """How often Karmada checks the health of its members."""

    cluster_monitor_grace_period_seconds: Seconds = 40
    """How long a member may report no status before it counts as unhealthy."""

    cluster_startup_grace_period_seconds: Seconds = 60
    """How long a member that has just joined may report no status before it counts as unhealthy."""

    cluster_success_threshold_seconds: Seconds = 30
    """How long a member must be healthy again before it counts as ready."""

    cluster_failure_threshold_seconds: Seconds = 30
    """How long a member must be unhealthy before it counts as not ready."""

    graceful_eviction_timeout_seconds: Seconds = 600
    """How long a workload stays on the lost member while its replacement elsewhere is not yet healthy."""


class Descheduler(Fields, frozen=True, kw_only=True):
    """Moves replicas that cannot be scheduled in their cluster to other clusters."""

    enabled: bool = False
    """Whether the descheduler runs, and an estimator for each member with it."""

    interval_seconds: Seconds = 120
    """How often it looks for such replicas."""

    unschedulable_threshold_seconds: Seconds = 300
    """How long a replica must have been unschedulable."""


class MetricsAdapter(Fields, frozen=True, kw_only=True):
    """Serves metrics over all member clusters, which scaling across clusters needs."""

    enabled: bool = False
    """Whether the metrics adapter runs."""


class Search(Fields, frozen=True, kw_only=True):
    """Karmada's own search and resource proxy. The plane itself reads from its index and does not need it."""

    enabled: bool = False
    """Whether karmada-search runs."""


class BackupRequest(Fields, frozen=True, kw_only=True):
    """A backup that should exist."""

    name: Label
    """Name of the backup. It is taken once; use another name for a later backup."""


class RestoreRequest(Fields, frozen=True, kw_only=True):
    """A restore of a backup. Everything written to the instance since the backup is lost."""

    request: Identifier
    """Any identifier that was not used before, for example a date. Each is executed exactly once."""

    backup: Label
    """Name of one of the backups in spec.backups. While it is named here it cannot be removed there."""


class InstanceSpec(Fields, frozen=True, kw_only=True):
    """The desired state of the control plane."""

    RULES: ClassVar = (
        immutable("driver", "create another instance and move the clusters to it"),
        immutable("hostCluster", "a control plane cannot move; create another instance over there", optional=True),
        Rule(
            "(self.driver == 'external') == has(self.kubeconfigSecret)",
            "kubeconfigSecret is required with driver external, which adopts the Karmada it leads to, and only with it",
        ),
        Rule(
            "!has(self.restore) || (has(self.backups) && self.backups.exists(b, b.name == self.restore.backup))",
            "restore.backup must be one of backups; to remove a backup that was restored remove restore first",
        ),
    )

    driver: DriverName
    """How the control plane is run. Cannot change."""

    alias: Title = ""
    """Display name of the instance."""

    description: Annotated[str, Meta(max_length=1024)] = ""
    """What the instance is for."""

    version: KarmadaVersion | None = None
    """Karmada version, e.g. v1.18.2. A newer version upgrades the instance; an older version is refused. The default is
    the newest version that the driver offered at creation, or with driver external the version that was found."""

    host_cluster: HostCluster | None = None
    """The cluster in which the control plane runs; by default the cluster of the plane itself. Cannot change."""

    kubeconfig_secret: SecretReference | None = None
    """With driver external: the Secret in kairship-system whose key `kubeconfig` is for the Karmada to adopt."""

    failover: Failover = Failover()

    descheduler: Descheduler = Descheduler()

    metrics_adapter: MetricsAdapter = MetricsAdapter()

    search: Search = Search()

    release_on_delete: bool = False
    """Whether deleting this object releases the Karmada instead of destroying it. It can be adopted again."""

    backups: Annotated[tuple[BackupRequest, ...], keyed_by("name", max_length=64)] = ()
    """The backups that should exist. Adding a name takes a backup, removing the name removes the backup."""

    restore: RestoreRequest | None = None
    """The last restore that was requested."""


class Instance(CustomResource, frozen=True, kw_only=True):
    """A Karmada control plane. Clusters join it, and it distributes workloads over them."""

    RULES: ClassVar = (
        named_by_label("an instance", longest=LONGEST_NAME),
        Rule(f"self.metadata.name != '{RESERVED_NAME}'", f"the name '{RESERVED_NAME}' is reserved"),
        Rule(
            f"self.spec.driver != 'operator' || (self.metadata.name.size() <= {LONGEST_OPERATOR_NAME} "
            "&& self.metadata.name.matches('^[a-z]'))",
            f"with driver operator a name has at most {LONGEST_OPERATOR_NAME} characters and begins with a letter, "
            "because Services are named after it",
        ),
    )

    api_version: Literal["kairship.io/v1alpha1"] = always("kairship.io/v1alpha1")
    kind: Literal["Instance"] = always("Instance")
    spec: InstanceSpec
    status: InstanceStatus = InstanceStatus()


INSTANCES = Definition(
    resource=Instance,
    plural="instances",
    short_names=("inst",),
    conditions=InstanceCondition,
    columns=(
        Column("Driver", ".spec.driver", "How the control plane is run."),
        Column("Version", ".status.karmadaVersion", "Karmada version that runs."),
        Column("State", ".status.state", "What the instance is doing."),
        Column("Clusters", ".status.summary.clusters.total", "Member clusters.", type="integer"),
        Column("Ready", ".status.summary.clusters.ready", "Member clusters that are ready.", type="integer"),
        Column("Step", ".status.operation.step", "The current step of the running operation."),
        Column("Age", ".metadata.creationTimestamp", "Time since creation.", type="date"),
        Column("Alias", ".spec.alias", "Display name of the instance.", wide=True),
        Column("Kubernetes", ".status.kubernetesVersion", "Version of its Kubernetes API.", wide=True),
        Column("Endpoint", ".status.endpoint", "Address of its API server.", wide=True),
        Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why it is ready or not.", wide=True),
    ),
    selectable=(".spec.driver", ".status.state"),
)
