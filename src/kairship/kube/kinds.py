"""The kinds of Kubernetes and of Karmada that this project names in code. Any other is found by `Discovery`."""

from .resource import Resource


def _global(api_version: str, plural: str, kind: str) -> Resource:
    return Resource.of(api_version, plural, kind=kind, namespaced=False)


def _namespaced(api_version: str, plural: str, kind: str) -> Resource:
    return Resource.of(api_version, plural, kind=kind, namespaced=True)


NAMESPACES = _global("v1", "namespaces", "Namespace")
NODES = _global("v1", "nodes", "Node")
PERSISTENT_VOLUMES = _global("v1", "persistentvolumes", "PersistentVolume")
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
CERTIFICATE_SIGNING_REQUESTS = _global(
    "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest"
)
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
CLUSTER_TAINT_POLICIES = _global("policy.karmada.io/v1alpha1", "clustertaintpolicies", "ClusterTaintPolicy")
FEDERATED_RESOURCE_QUOTAS = _namespaced(
    "policy.karmada.io/v1alpha1", "federatedresourcequotas", "FederatedResourceQuota"
)
FEDERATED_HPAS = _namespaced("autoscaling.karmada.io/v1alpha1", "federatedhpas", "FederatedHPA")
CRON_FEDERATED_HPAS = _namespaced("autoscaling.karmada.io/v1alpha1", "cronfederatedhpas", "CronFederatedHPA")
MULTI_CLUSTER_SERVICES = _namespaced("networking.karmada.io/v1alpha1", "multiclusterservices", "MultiClusterService")
MULTI_CLUSTER_INGRESSES = _namespaced("networking.karmada.io/v1alpha1", "multiclusteringresses", "MultiClusterIngress")
WORKLOAD_REBALANCERS = _global("apps.karmada.io/v1alpha1", "workloadrebalancers", "WorkloadRebalancer")
REMEDIES = _global("remedy.karmada.io/v1alpha1", "remedies", "Remedy")
RESOURCE_REGISTRIES = _global("search.karmada.io/v1alpha1", "resourceregistries", "ResourceRegistry")
INTERPRETER_CUSTOMIZATIONS = _global(
    "config.karmada.io/v1alpha1", "resourceinterpretercustomizations", "ResourceInterpreterCustomization"
)
INTERPRETER_WEBHOOKS = _global(
    "config.karmada.io/v1alpha1", "resourceinterpreterwebhookconfigurations", "ResourceInterpreterWebhookConfiguration"
)
KARMADAS = _namespaced("operator.karmada.io/v1alpha1", "karmadas", "Karmada")
