"""The conditions of an instance, their writers and their reasons."""

from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer


class InstanceReason(DocumentedEnum):
    """Why a condition of an instance has its status."""

    # Ready
    AS_EXPECTED = "AsExpected", "the control plane is reachable and all its components are healthy"
    NOT_CREATED = "NotCreated", "the control plane does not exist yet"
    DEGRADED = "Degraded", "it can be used, but a component other than its API server is unhealthy"
    NOT_REACHABLE = "NotReachable", "its API server does not answer"
    BEING_DELETED = "BeingDeleted", "it is being deleted"

    # Lifecycle
    CREATED = "Created", "the control plane exists"
    ADOPTED = "Adopted", "an existing Karmada was adopted"
    CREATING = "Creating", "the control plane is being created; status.operation has the progress"
    CREATE_FAILED = "CreateFailed", "a step failed and is retried; the message says which and why"
    ADOPT_REFUSED = "AdoptRefused", "the server of the kubeconfig is no Karmada, or it belongs to another instance"
    CONFIGURED = "Configured", "every component runs with the settings of the spec"
    CONFIGURING = "Configuring", "settings are being changed"
    CONFIGURE_FAILED = "ConfigureFailed", "a step failed and is retried; the message says which and why"
    NOT_SUPPORTED = "NotSupported", "the driver of this instance does not support it"
    UP_TO_DATE = "UpToDate", "the version of the spec is running"
    UPGRADING = "Upgrading", "the version is being changed, component by component, after a snapshot"
    ROLLING_BACK = "RollingBack", "an upgrade failed and the state before it is being restored"
    ROLLED_BACK = "RolledBack", "an upgrade failed; the version and the data are those before it"
    UPGRADE_FAILED = "UpgradeFailed", "both the upgrade and the rollback failed; the message says what to do"
    DOWNGRADE_REFUSED = "DowngradeRefused", "the spec asks for an older version; restore a backup instead"
    VERSION_NOT_OFFERED = "VersionNotOffered", "the driver does not offer the version that the spec asks for"
    BACKED_UP = "BackedUp", "every backup of the spec is complete"
    BACKING_UP = "BackingUp", "a backup is being taken"
    BACKUP_FAILED = "BackupFailed", "a backup failed and is retried"
    RESTORED = "Restored", "the restore that the spec asks for is done"
    RESTORING = "Restoring", "a backup is being restored"
    RESTORE_FAILED = "RestoreFailed", "a step of the restore failed and is retried"
    BACKUP_UNUSABLE = "BackupUnusable", "the backup is incomplete, damaged or of another instance; nothing was changed"
    CLUSTERS_JOINED = "ClustersJoined", "clusters are still joined; deletion waits until their memberships are gone"
    DESTROYING = "Destroying", "the control plane and its data are being removed"
    RELEASING = "Releasing", "the Karmada is being released and stays as it is"
    DELETE_FAILED = "DeleteFailed", "a step of the deletion failed and is retried"

    # CredentialsValid
    VALID = "Valid", "the credential is valid for a while; the message has its expiry, if it has one"
    EXPIRING = "Expiring", "the credential is valid and expires soon; the message says when and what to do"
    EXPIRED = "Expired", "the credential has expired; the message says what to do"

    # Reachable
    ANSWERS = "Answers", "the API server answers with the plane's credential"
    CONNECT_FAILED = "ConnectFailed", "no connection to the API server"
    TIMED_OUT = "TimedOut", "the API server took too long to answer"
    CERTIFICATE_REJECTED = "CertificateRejected", "the API server's certificate has expired or is not trusted"
    CREDENTIAL_REJECTED = "CredentialRejected", "the API server does not accept the plane's credential"

    # Components
    HEALTHY = "Healthy", "its health check succeeds"
    UNHEALTHY = "Unhealthy", "its health check fails; the message has its answer"
    NOT_RUNNING = "NotRunning", "it does not run"
    SWITCHED_OFF = "SwitchedOff", "the spec does not ask for it"
    NOT_OBSERVED = "NotObserved", "its state could not be observed"

    # Members
    ALL_REACHABLE = "AllReachable", "Karmada can reach every member cluster"
    SOME_UNREACHABLE = "SomeUnreachable", "Karmada cannot reach some member clusters; the message names them"
    NO_MEMBERS = "NoMembers", "no cluster is joined"

    # Admission
    ENFORCED = "Enforced", "the instance enforces the plane's admission policies, and rights are written into it"
    NOT_ENFORCED = "NotEnforced", "the policies could not be written; no new right is written; the message says why"

    # Neighbours
    SYNCED = "Synced", "container management has the hidden cluster of this instance"
    SYNC_FAILED = "SyncFailed", "the hidden cluster could not be written"
    REGISTERED = "Registered", "global management has registered the instance, so that roles can be bound to it"
    REGISTRATION_PENDING = "RegistrationPending", "global management has not processed the registration yet"


_R = InstanceReason
_HEALTH = (_R.HEALTHY, _R.UNHEALTHY, _R.NOT_RUNNING, _R.NOT_OBSERVED)
_OPTIONAL = (*_HEALTH, _R.SWITCHED_OFF)


class InstanceCondition(ConditionType):
    """The conditions of an instance."""

    READY = (
        "Ready",
        Writer.STATUS_SYNC,
        "the instance can be used; this summarises the other conditions, for `kubectl wait`",
        (_R.AS_EXPECTED, _R.DEGRADED, _R.NOT_CREATED, _R.NOT_REACHABLE, _R.BEING_DELETED),
    )
    CREATED = (
        "Created",
        Writer.LIFECYCLE,
        "the control plane exists",
        (_R.CREATED, _R.ADOPTED, _R.CREATING, _R.CREATE_FAILED, _R.ADOPT_REFUSED),
    )
    CONFIGURED = (
        "Configured",
        Writer.LIFECYCLE,
        "the settings of the spec are in effect",
        (_R.CONFIGURED, _R.CONFIGURING, _R.CONFIGURE_FAILED, _R.NOT_SUPPORTED),
    )
    UPGRADED = (
        "Upgraded",
        Writer.LIFECYCLE,
        "the version of the spec is running",
        (
            _R.UP_TO_DATE,
            _R.UPGRADING,
            _R.ROLLING_BACK,
            _R.ROLLED_BACK,
            _R.UPGRADE_FAILED,
            _R.DOWNGRADE_REFUSED,
            _R.VERSION_NOT_OFFERED,
            _R.NOT_SUPPORTED,
        ),
    )
    BACKED_UP = (
        "BackedUp",
        Writer.LIFECYCLE,
        "the backups of the spec exist",
        (_R.BACKED_UP, _R.BACKING_UP, _R.BACKUP_FAILED, _R.NOT_SUPPORTED),
    )
    RESTORED = (
        "Restored",
        Writer.LIFECYCLE,
        "the restore of the spec is done",
        (_R.RESTORED, _R.RESTORING, _R.RESTORE_FAILED, _R.BACKUP_UNUSABLE, _R.NOT_SUPPORTED),
    )
    DELETING = (
        "Deleting",
        Writer.LIFECYCLE,
        "the instance is being deleted; the message says what the deletion waits for",
        (_R.CLUSTERS_JOINED, _R.DESTROYING, _R.RELEASING, _R.DELETE_FAILED),
    )
    CREDENTIALS_VALID = (
        "CredentialsValid",
        Writer.LIFECYCLE,
        "the kubeconfig with which the plane uses the instance has not expired; the message has its expiry",
        (_R.VALID, _R.EXPIRING, _R.EXPIRED),
    )
    REACHABLE = (
        "Reachable",
        Writer.STATUS_SYNC,
        "the instance's API server answers the plane",
        (
            _R.ANSWERS,
            _R.CONNECT_FAILED,
            _R.TIMED_OUT,
            _R.CERTIFICATE_REJECTED,
            _R.CREDENTIAL_REJECTED,
            _R.NOT_CREATED,
        ),
    )
    ETCD_HEALTHY = "EtcdHealthy", Writer.STATUS_SYNC, "etcd stores and serves the instance's objects", _HEALTH
    API_SERVER_HEALTHY = "ApiServerHealthy", Writer.STATUS_SYNC, "the Kubernetes API of the instance is served", _HEALTH
    AGGREGATED_API_SERVER_HEALTHY = (
        "AggregatedApiServerHealthy",
        Writer.STATUS_SYNC,
        "the API of clusters is served, and members are accessible through the instance",
        _HEALTH,
    )
    KUBE_CONTROLLER_MANAGER_HEALTHY = (
        "KubeControllerManagerHealthy",
        Writer.STATUS_SYNC,
        "Kubernetes' own controllers run: namespaces, garbage collection, tokens",
        _HEALTH,
    )
    CONTROLLER_MANAGER_HEALTHY = (
        "ControllerManagerHealthy",
        Writer.STATUS_SYNC,
        "Karmada's controllers run and apply scheduled workloads to the members",
        _HEALTH,
    )
    SCHEDULER_HEALTHY = "SchedulerHealthy", Writer.STATUS_SYNC, "workloads are scheduled to members", _HEALTH
    WEBHOOK_HEALTHY = "WebhookHealthy", Writer.STATUS_SYNC, "policies are validated and defaulted on writes", _HEALTH
    SEARCH_HEALTHY = "SearchHealthy", Writer.STATUS_SYNC, "Karmada's search is served, if it is enabled", _OPTIONAL
    METRICS_ADAPTER_HEALTHY = (
        "MetricsAdapterHealthy",
        Writer.STATUS_SYNC,
        "metrics over all members are served, if the adapter is enabled",
        _OPTIONAL,
    )
    DESCHEDULER_HEALTHY = (
        "DeschedulerHealthy",
        Writer.STATUS_SYNC,
        "unschedulable replicas are moved, if descheduling is enabled",
        _OPTIONAL,
    )
    MEMBERS_REACHABLE = (
        "MembersReachable",
        Writer.STATUS_SYNC,
        "Karmada can reach its member clusters",
        (_R.ALL_REACHABLE, _R.SOME_UNREACHABLE, _R.NO_MEMBERS, _R.NOT_OBSERVED),
    )
    POLICIES_ENFORCED = (
        "PoliciesEnforced",
        Writer.ACCESS,
        "the plane's admission policies hold inside, so that nobody gains rights by what Karmada does for them",
        (_R.ENFORCED, _R.NOT_ENFORCED),
    )
    VIRTUAL_CLUSTER_SYNCED = (
        "VirtualClusterSynced",
        Writer.VIRTUAL_CLUSTER_SYNC,
        "container management has a hidden cluster for the instance, so that its objects are in the index",
        (_R.SYNCED, _R.SYNC_FAILED, _R.NOT_CREATED),
    )
    REGISTERED = (
        "Registered",
        Writer.INSTANCE_REGISTRY,
        "the instance is registered with global management",
        (_R.REGISTERED, _R.REGISTRATION_PENDING),
    )
