"""The kinds of Kubernetes and Karmada that permissions are about, each in one line.

The name of a kind in a permission is its plural. A kind that is neither here nor a custom resource is closed to every
caller of the plane: Works embed Secrets and member tokens, and certificate requests and webhooks would bypass the
permissions on everything else.
"""

import msgspec

from kairship.access.catalogue.roles import Role

KARMADA = ".karmada.io"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    plural: str
    title: str
    namespaced: bool = True
    writer: Role | None = Role.EDITOR
    """The least role that may write it; None if it is read-only through the plane."""


def _kinds(
    group: str, *entries: tuple[str, str], namespaced: bool = True, writer: Role | None = Role.EDITOR
) -> list[Kind]:
    return [
        Kind(group=group, plural=plural, title=title, namespaced=namespaced, writer=writer) for plural, title in entries
    ]


KINDS = (
    *_kinds(
        "",
        ("configmaps", "ConfigMaps"),
        ("services", "Services"),
        ("persistentvolumeclaims", "volume claims"),
        ("serviceaccounts", "service accounts"),
        ("limitranges", "limit ranges"),
        ("resourcequotas", "resource quotas"),
    ),
    *_kinds("", ("pods", "Pods")),
    *_kinds("", ("endpoints", "Endpoints"), ("events", "events"), writer=None),
    *_kinds("", ("namespaces", "namespaces"), namespaced=False),
    *_kinds("", ("nodes", "nodes"), ("persistentvolumes", "volumes"), namespaced=False, writer=None),
    *_kinds("apps", ("deployments", "Deployments"), ("statefulsets", "StatefulSets"), ("daemonsets", "DaemonSets")),
    *_kinds("apps", ("replicasets", "ReplicaSets"), ("controllerrevisions", "controller revisions"), writer=None),
    *_kinds("batch", ("jobs", "Jobs"), ("cronjobs", "CronJobs")),
    *_kinds("autoscaling", ("horizontalpodautoscalers", "autoscalers")),
    *_kinds("policy", ("poddisruptionbudgets", "disruption budgets")),
    *_kinds("networking.k8s.io", ("ingresses", "Ingresses"), ("networkpolicies", "network policies")),
    *_kinds("networking.k8s.io", ("ingressclasses", "ingress classes"), namespaced=False, writer=None),
    *_kinds("storage.k8s.io", ("storageclasses", "storage classes"), namespaced=False, writer=None),
    *_kinds("discovery.k8s.io", ("endpointslices", "endpoint slices"), writer=None),
    *_kinds("coordination.k8s.io", ("leases", "leases")),
    *_kinds("apiextensions.k8s.io", ("customresourcedefinitions", "custom resource definitions"), namespaced=False),
    *_kinds(
        "policy.karmada.io",
        ("propagationpolicies", "propagation policies"),
        ("overridepolicies", "override policies"),
        ("federatedresourcequotas", "federated quotas"),
    ),
    *_kinds(
        "policy.karmada.io",
        ("clusterpropagationpolicies", "cluster propagation policies"),
        ("clusteroverridepolicies", "cluster override policies"),
        namespaced=False,
    ),
    *_kinds(
        "policy.karmada.io", ("clustertaintpolicies", "cluster taint policies"), namespaced=False, writer=Role.ADMIN
    ),
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
    *_kinds("apps.karmada.io", ("workloadrebalancers", "workload rebalancers"), namespaced=False),
    *_kinds("remedy.karmada.io", ("remedies", "remedies"), namespaced=False, writer=Role.ADMIN),
    *_kinds(
        "config.karmada.io",
        ("resourceinterpretercustomizations", "interpreter customizations"),
        namespaced=False,
        writer=Role.ADMIN,
    ),
)

BY_RESOURCE = {(kind.group, kind.plural): kind for kind in KINDS}

BUILT_IN_GROUPS = frozenset(
    {kind.group for kind in KINDS}
    | {
        "admissionregistration.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
        "certificates.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
        "internal.apiserver.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
        "scheduling.k8s.io", "storagemigration.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
    }
)  # fmt: skip


def is_custom(group: str) -> bool:
    """Whether an API group is of custom resources. Of the groups of Kubernetes and Karmada only `KINDS` are open."""
    return group not in BUILT_IN_GROUPS and not group.endswith(KARMADA) and "." in group
