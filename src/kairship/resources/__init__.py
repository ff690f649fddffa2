"""Our custom resources: typed structures, from which their CustomResourceDefinitions are generated.

Each kind has a module with its structures, its conditions, its rules and its `Definition`; large ones also have
`*_conditions` and `*_status`. The smaller structures of a kind are found there (`instance.Failover`,
`instance_status.Totals`). `condition` and `finding` have conditions and their changes, and `coverage` the part of the
platform that a permission covers. `schema` turns the structures into CustomResourceDefinitions, and `install` has all
manifests, which `python -m kairship.resources deploy/crds` writes to files.
"""

from kairship.resources import access_binding, cluster, instance, instance_status, membership, product, registration
from kairship.resources.access_binding import (
    ACCESS_BINDINGS,
    AccessBinding,
    AccessBindingCondition,
    AccessBindingReason,
    AccessBindingSpec,
    AccessBindingStatus,
    ScopeLevel,
    SubjectKind,
)
from kairship.resources.cluster import (
    CLUSTERS,
    VIRTUAL_PREFIX,
    Cluster,
    ClusterPhase,
    ClusterSpec,
    ClusterStatus,
    virtual_cluster_name,
)
from kairship.resources.cluster_conditions import ClusterCondition, ClusterReason
from kairship.resources.condition import (
    Condition,
    ConditionStatus,
    find_condition,
    is_true,
    set_condition,
    written_by,
)
from kairship.resources.coverage import Coverage
from kairship.resources.finding import Finding
from kairship.resources.install.manifests import DEFINITIONS, admission_policies, crds
from kairship.resources.instance import INSTANCES, RESERVED_NAME, DriverName, Instance, InstanceSpec
from kairship.resources.instance_conditions import InstanceCondition, InstanceReason
from kairship.resources.instance_status import InstanceState, InstanceStatus, Operation
from kairship.resources.membership import (
    MEMBERSHIPS,
    Membership,
    MembershipCondition,
    MembershipPhase,
    MembershipReason,
    MembershipSpec,
    MembershipStatus,
    OnRemove,
)
from kairship.resources.plane_namespace import ADOPTS_LABEL, KUBECONFIG, NAMESPACE
from kairship.resources.product import PRODUCTS, Product, ProductCondition, ProductSpec, ProductStatus
from kairship.resources.registration import (
    REGISTRATIONS,
    Registration,
    RegistrationCondition,
    RegistrationReason,
    RegistrationSpec,
    RegistrationStatus,
)
from kairship.resources.reserved_namespaces import RESERVED_PREFIX, is_reserved, reserve, reserved_names
from kairship.resources.schema.condition_type import ConditionType
from kairship.resources.schema.definition import Definition
from kairship.resources.schema.documented_enum import DocumentedEnum, Writer
from kairship.resources.schema.fields import (
    CustomResource,
    Fields,
    ObjectMeta,
    OwnerReference,
)
from kairship.resources.schema.scalars import ReadyCount, SecretReference
from kairship.resources.versions import is_older

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
    "Coverage",
    "CustomResource",
    "Definition",
    "DocumentedEnum",
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
    "ReadyCount",
    "Registration",
    "RegistrationCondition",
    "RegistrationReason",
    "RegistrationSpec",
    "RegistrationStatus",
    "ScopeLevel",
    "SecretReference",
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
    "reserve",
    "reserved_names",
    "set_condition",
    "virtual_cluster_name",
    "written_by",
]
