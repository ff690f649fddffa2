"""The kinds of Kubernetes and Karmada that permissions are about, each in one line.

For namespaced kinds of Kubernetes the roles are those of its own `view`, `edit` and `admin`, and a test names every
difference. Cluster-scoped configuration is read by Viewers of the instance; its Admins write what gives no power over
the members or the API server.

The name of a kind in a permission is its plural. A kind that is neither here nor a custom resource is closed to every
caller of the plane: certificate requests, token reviews and the like would bypass the permissions on everything else.
"""

import msgspec

from kairship.access.catalogue.roles import Role

KARMADA = ".karmada.io"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    plural: str
    title: str
    namespaced: bool = True
    also_in: str | None = None
    """Another API group that serves the same objects."""
    reader: Role = Role.VIEWER
    """The least role that may read it."""
    writer: Role | None = Role.EDITOR
    """The least role that may write it; None if it is read-only through the plane."""
    written_on_instance: bool = False
    """Whether only rights on the whole instance allow to write it, although it is namespaced. Such a kind limits what
    is done in its namespace, so those who have rights on the namespace alone must not change it."""
    propagator: Role | None = None
    """The least role that may let Karmada bring it into members, if the right to create it is not enough."""
    overrider: Role | None = None
    """The least role that may let Karmada change it on its way into members, if the right to update it is not
    enough."""
    has_secrets: bool = False
    """Whether its objects contain secret data."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (self.group,) if self.also_in is None else (self.group, self.also_in)

    @property
    def is_read_only_in_members(self) -> bool:
        """Whether no caller of the plane may write it in a member: cluster-scoped configuration is the member's own."""
        return not self.namespaced and self.plural != "namespaces"


def _kinds(
    group: str,
    *entries: tuple[str, str],
    namespaced: bool = True,
    also_in: str | None = None,
    reader: Role = Role.VIEWER,
    writer: Role | None = Role.EDITOR,
    written_on_instance: bool = False,
    propagator: Role | None = None,
    overrider: Role | None = None,
    has_secrets: bool = False,
) -> list[Kind]:
    return [
        Kind(
            group=group,
            plural=plural,
            title=title,
            namespaced=namespaced,
            also_in=also_in,
            reader=reader,
            writer=writer,
            written_on_instance=written_on_instance,
            propagator=propagator,
            overrider=overrider,
            has_secrets=has_secrets,
        )
        for plural, title in entries
    ]


_A, _P = Role.ADMIN, Role.PLATFORM_ADMIN

KINDS = (
    *_kinds(
        "",
        ("configmaps", "ConfigMaps"),
        ("services", "Services"),
        ("persistentvolumeclaims", "volume claims"),
        ("serviceaccounts", "service accounts"),
        ("pods", "Pods"),
        ("replicationcontrollers", "replication controllers"),
    ),
    *_kinds(
        "", ("limitranges", "limit ranges"), ("resourcequotas", "resource quotas"), writer=_A, written_on_instance=True
    ),
    *_kinds("", ("events", "events"), also_in="events.k8s.io"),
    *_kinds("", ("endpoints", "Endpoints"), ("podtemplates", "Pod templates"), writer=None),
    *_kinds("", ("namespaces", "namespaces"), namespaced=False),
    *_kinds("", ("nodes", "nodes"), ("persistentvolumes", "volumes"), namespaced=False, writer=None),
    *_kinds(
        "apps",
        ("deployments", "Deployments"),
        ("statefulsets", "StatefulSets"),
        ("daemonsets", "DaemonSets"),
        ("replicasets", "ReplicaSets"),
    ),
    *_kinds("apps", ("controllerrevisions", "controller revisions"), writer=None),
    *_kinds("batch", ("jobs", "Jobs"), ("cronjobs", "CronJobs")),
    *_kinds("autoscaling", ("horizontalpodautoscalers", "autoscalers")),
    *_kinds("policy", ("poddisruptionbudgets", "disruption budgets")),
    *_kinds("networking.k8s.io", ("ingresses", "Ingresses"), ("networkpolicies", "network policies")),
    *_kinds("networking.k8s.io", ("ingressclasses", "ingress classes"), namespaced=False, writer=_A),
    # These would change which addresses the API server gives to Services.
    *_kinds(
        "networking.k8s.io",
        ("ipaddresses", "IP addresses"),
        ("servicecidrs", "ranges of Service addresses"),
        namespaced=False,
        writer=None,
    ),
    *_kinds("discovery.k8s.io", ("endpointslices", "endpoint slices"), writer=None),
    *_kinds("coordination.k8s.io", ("leases", "leases")),
    *_kinds("scheduling.k8s.io", ("priorityclasses", "priority classes"), namespaced=False, writer=_A),
    *_kinds("node.k8s.io", ("runtimeclasses", "runtime classes"), namespaced=False, writer=_A),
    *_kinds(
        "storage.k8s.io",
        ("storageclasses", "storage classes"),
        ("volumeattributesclasses", "volume attributes classes"),
        ("csidrivers", "CSI drivers"),
        namespaced=False,
        writer=_A,
    ),
    # Kubelets and storage controllers write these.
    *_kinds(
        "storage.k8s.io",
        ("csinodes", "CSI nodes"),
        ("volumeattachments", "volume attachments"),
        namespaced=False,
        writer=None,
    ),
    *_kinds("storage.k8s.io", ("csistoragecapacities", "CSI storage capacities"), writer=None),
    *_kinds(
        "resource.k8s.io", ("resourceclaims", "resource claims"), ("resourceclaimtemplates", "resource claim templates")
    ),
    *_kinds(
        "resource.k8s.io",
        ("deviceclasses", "device classes"),
        ("resourceslices", "resource slices"),
        namespaced=False,
        writer=None,
    ),
    # Who may write a role or a binding of roles may still not grant more than they hold: the API server sees to it when
    # they write it there. It does not see what an override makes of it, nor what else Karmada brings into a member.
    *_kinds(
        "rbac.authorization.k8s.io",
        ("roles", "Kubernetes roles"),
        ("rolebindings", "Kubernetes role bindings"),
        reader=_A,
        writer=_A,
        overrider=_P,
    ),
    *_kinds(
        "rbac.authorization.k8s.io",
        ("clusterroles", "Kubernetes cluster roles"),
        ("clusterrolebindings", "Kubernetes cluster role bindings"),
        namespaced=False,
        reader=_A,
        writer=_A,
        propagator=_P,
        overrider=_P,
    ),
    *_kinds(
        "apiextensions.k8s.io",
        ("customresourcedefinitions", "custom resource definitions"),
        namespaced=False,
        writer=_A,
    ),
    *_kinds(
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations", "validating webhooks"),
        ("mutatingwebhookconfigurations", "mutating webhooks"),
        namespaced=False,
        writer=_A,
        propagator=_P,
        overrider=_P,
    ),
    *_kinds(
        "apiregistration.k8s.io",
        ("apiservices", "API services"),
        namespaced=False,
        writer=_A,
        propagator=_P,
        overrider=_P,
    ),
    # Admission policies are what keeps callers of the plane within their limits.
    *_kinds(
        "admissionregistration.k8s.io",
        ("validatingadmissionpolicies", "validating admission policies"),
        ("validatingadmissionpolicybindings", "bindings of validating admission policies"),
        ("mutatingadmissionpolicies", "mutating admission policies"),
        ("mutatingadmissionpolicybindings", "bindings of mutating admission policies"),
        namespaced=False,
        writer=None,
    ),
    # These decide which requests the API server serves first.
    *_kinds(
        "flowcontrol.apiserver.k8s.io",
        ("flowschemas", "flow schemas"),
        ("prioritylevelconfigurations", "priority levels"),
        namespaced=False,
        writer=None,
    ),
    *_kinds(
        "policy.karmada.io", ("propagationpolicies", "propagation policies"), ("overridepolicies", "override policies")
    ),
    *_kinds("policy.karmada.io", ("federatedresourcequotas", "federated quotas"), writer=_A, written_on_instance=True),
    *_kinds(
        "policy.karmada.io",
        ("clusterpropagationpolicies", "cluster propagation policies"),
        ("clusteroverridepolicies", "cluster override policies"),
        namespaced=False,
    ),
    *_kinds("policy.karmada.io", ("clustertaintpolicies", "cluster taint policies"), namespaced=False, writer=_A),
    *_kinds(
        "autoscaling.karmada.io",
        ("federatedhpas", "federated autoscalers"),
        ("cronfederatedhpas", "scheduled autoscalers"),
    ),
    *_kinds(
        "networking.karmada.io",
        ("multiclusterservices", "multi-cluster Services"),
        ("multiclusteringresses", "multi-cluster Ingresses"),
    ),
    *_kinds("multicluster.x-k8s.io", ("serviceexports", "service exports"), ("serviceimports", "service imports")),
    *_kinds("work.karmada.io", ("resourcebindings", "resource bindings"), writer=None),
    *_kinds("work.karmada.io", ("clusterresourcebindings", "cluster resource bindings"), namespaced=False, writer=None),
    # A Work holds the objects that Karmada brings into a member, Secrets among them.
    *_kinds("work.karmada.io", ("works", "Works"), reader=_P, writer=None, has_secrets=True),
    *_kinds("apps.karmada.io", ("workloadrebalancers", "workload rebalancers"), namespaced=False),
    *_kinds("remedy.karmada.io", ("remedies", "remedies"), namespaced=False, writer=_A),
    *_kinds("search.karmada.io", ("resourceregistries", "resource registries"), namespaced=False, writer=None),
    # Their scripts and webhooks decide what Karmada does with its full rights.
    *_kinds(
        "config.karmada.io",
        ("resourceinterpretercustomizations", "interpreter customizations"),
        ("resourceinterpreterwebhookconfigurations", "interpreter webhooks"),
        namespaced=False,
        writer=_P,
    ),
)

BY_RESOURCE = {(group, kind.plural): kind for kind in KINDS for group in kind.groups}

WITH_SECRETS = frozenset({("", "secrets")} | {(kind.group, kind.plural) for kind in KINDS if kind.has_secrets})
"""The kinds, by group and plural, whose objects contain secret data."""

BUILT_IN_GROUPS = frozenset(
    {group for group, _ in BY_RESOURCE}
    | {
        "authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "extensions",
        "internal.apiserver.k8s.io", "storagemigration.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
    }
)  # fmt: skip


def is_custom(group: str) -> bool:
    """Whether an API group is of custom resources. Of the groups of Kubernetes and Karmada only `KINDS` are open."""
    return group not in BUILT_IN_GROUPS and not group.endswith(KARMADA) and "." in group
