"""The kinds of Kubernetes and of Karmada that this project names in code. Any other kind is found by `Discovery`."""

from kairship.kube.resource import Resource


def _global(api_version: str, plural: str, kind: str) -> Resource:
    return Resource.of(api_version, plural, kind=kind, namespaced=False)


def _namespaced(api_version: str, plural: str, kind: str) -> Resource:
    return Resource.of(api_version, plural, kind=kind, namespaced=True)


NAMESPACES = _global("v1", "namespaces", "Namespace")
NODES = _global("v1", "nodes", "Node")
CONFIGMAPS = _namespaced("v1", "configmaps", "ConfigMap")
EVENTS = _namespaced("v1", "events", "Event")
PERSISTENT_VOLUME_CLAIMS = _namespaced("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = _namespaced("v1", "pods", "Pod")
SECRETS = _namespaced("v1", "secrets", "Secret")
SERVICES = _namespaced("v1", "services", "Service")
SERVICE_ACCOUNTS = _namespaced("v1", "serviceaccounts", "ServiceAccount")

DEPLOYMENTS = _namespaced("apps/v1", "deployments", "Deployment")
STATEFUL_SETS = _namespaced("apps/v1", "statefulsets", "StatefulSet")
DAEMON_SETS = _namespaced("apps/v1", "daemonsets", "DaemonSet")
REPLICA_SETS = _namespaced("apps/v1", "replicasets", "ReplicaSet")
JOBS = _namespaced("batch/v1", "jobs", "Job")
CRON_JOBS = _namespaced("batch/v1", "cronjobs", "CronJob")
INGRESSES = _namespaced("networking.k8s.io/v1", "ingresses", "Ingress")

CLUSTER_ROLES = _global("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole")
CLUSTER_ROLE_BINDINGS = _global("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding")
ROLES = _namespaced("rbac.authorization.k8s.io/v1", "roles", "Role")
ROLE_BINDINGS = _namespaced("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")

LEASES = _namespaced("coordination.k8s.io/v1", "leases", "Lease")
CRDS = _global("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition")
API_SERVICES = _global("apiregistration.k8s.io/v1", "apiservices", "APIService")
VALIDATING_WEBHOOKS = _global(
    "admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
)
MUTATING_WEBHOOKS = _global(
    "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
)
VALIDATING_ADMISSION_POLICIES = _global(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
)
VALIDATING_ADMISSION_POLICY_BINDINGS = _global(
    "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)

TOKEN_REVIEWS = _global("authentication.k8s.io/v1", "tokenreviews", "TokenReview")
SUBJECT_ACCESS_REVIEWS = _global("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview")
SELF_SUBJECT_ACCESS_REVIEWS = _global("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")

# Karmada
CLUSTERS = _global("cluster.karmada.io/v1alpha1", "clusters", "Cluster")
WORKS = _namespaced("work.karmada.io/v1alpha1", "works", "Work")
RESOURCE_BINDINGS = _namespaced("work.karmada.io/v1alpha2", "resourcebindings", "ResourceBinding")
CLUSTER_RESOURCE_BINDINGS = _global("work.karmada.io/v1alpha2", "clusterresourcebindings", "ClusterResourceBinding")
PROPAGATION_POLICIES = _namespaced("policy.karmada.io/v1alpha1", "propagationpolicies", "PropagationPolicy")
CLUSTER_PROPAGATION_POLICIES = _global(
    "policy.karmada.io/v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy"
)
OVERRIDE_POLICIES = _namespaced("policy.karmada.io/v1alpha1", "overridepolicies", "OverridePolicy")
CLUSTER_OVERRIDE_POLICIES = _global("policy.karmada.io/v1alpha1", "clusteroverridepolicies", "ClusterOverridePolicy")
