"""Our custom resources: typed structures, and the definitions that the API server needs of them, from one source.

A kind is one module: its structures, its conditions, its rules and how it is served. The smaller structures of a kind
are found there (`instance.Failover`, `instance_status.Totals`). `schema` and `crd` turn them into
CustomResourceDefinitions, `policies` has the refusals that look at other objects, `manifests` collects all of it, and
`python -m kairship.resources deploy/crds` writes it to files.
"""

from . import access_binding, cluster, instance, instance_status, membership, product, registration
from .access_binding import (
    ACCESS_BINDINGS,
    AccessBinding,
    AccessBindingCondition,
    AccessBindingReason,
    AccessBindingSpec,
    AccessBindingStatus,
    ScopeLevel,
    SubjectKind,
)
from .cluster import CLUSTERS, VIRTUAL_PREFIX, Cluster, ClusterPhase, ClusterSpec, ClusterStatus, virtual_cluster_name
from .cluster_conditions import ClusterCondition, ClusterReason
from .condition import Condition, ConditionStatus, ConditionType, find_condition, is_true, set_condition, written_by
from .definition import Definition
from .documented import Documented, Writer
from .fields import CustomResource, Fields, ObjectMeta, OwnerReference, StatusPatch, status_patch
from .finding import Finding
from .instance import INSTANCES, RESERVED_NAME, DriverName, Instance, InstanceSpec
from .instance_conditions import InstanceCondition, InstanceReason
from .instance_status import InstanceState, InstanceStatus, Operation
from .manifests import DEFINITIONS, admission_policies, crds
from .membership import (
    MEMBERSHIPS,
    Membership,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
    OnRemove,
)
from .plane_namespace import ADOPTS_LABEL, KUBECONFIG, NAMESPACE
from .product import PRODUCTS, Product, ProductCondition, ProductSpec, ProductStatus
from .reach import Reach
from .registration import (
    REGISTRATIONS,
    Registration,
    RegistrationCondition,
    RegistrationReason,
    RegistrationSpec,
    RegistrationStatus,
)
from .reserved_namespaces import RESERVED, RESERVED_PREFIX, is_reserved
from .scalars import ReadyCount, SecretReference
from .versions import is_older

__all__ = [
    "ACCESS_BINDINGS",
    "ADOPTS_LABEL",
    "CLUSTERS",
    "DEFINITIONS",
    "INSTANCES",
    "KUBECONFIG",
    "MEMBERSHIPS",
    "NAMESPACE",
    "PRODUCTS",
    "REGISTRATIONS",
    "RESERVED",
    "RESERVED_NAME",
    "RESERVED_PREFIX",
    "VIRTUAL_PREFIX",
    "AccessBinding",
    "AccessBindingCondition",
    "AccessBindingReason",
    "AccessBindingSpec",
    "AccessBindingStatus",
    "Cluster",
    "ClusterCondition",
    "ClusterPhase",
    "ClusterReason",
    "ClusterSpec",
    "ClusterStatus",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "CustomResource",
    "Definition",
    "Documented",
    "DriverName",
    "Fields",
    "Finding",
    "Instance",
    "InstanceCondition",
    "InstanceReason",
    "InstanceSpec",
    "InstanceState",
    "InstanceStatus",
    "Membership",
    "MembershipCondition",
    "MembershipPhase",
    "MembershipReason",
    "MembershipSpec",
    "MembershipStatus",
    "ObjectMeta",
    "OnRemove",
    "Operation",
    "OwnerReference",
    "Product",
    "ProductCondition",
    "ProductSpec",
    "ProductStatus",
    "Reach",
    "ReadyCount",
    "Registration",
    "RegistrationCondition",
    "RegistrationReason",
    "RegistrationSpec",
    "RegistrationStatus",
    "ScopeLevel",
    "SecretReference",
    "StatusPatch",
    "SubjectKind",
    "Writer",
    "access_binding",
    "admission_policies",
    "cluster",
    "crds",
    "find_condition",
    "instance",
    "instance_status",
    "is_older",
    "is_reserved",
    "is_true",
    "membership",
    "product",
    "registration",
    "set_condition",
    "status_patch",
    "virtual_cluster_name",
    "written_by",
]
