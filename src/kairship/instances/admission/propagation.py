"""Which kinds a person may have propagated, rescheduled and scaled by Karmada.

A PropagationPolicy makes Karmada create objects in members, an autoscaler makes Karmada scale them, and a rebalancer
makes Karmada schedule them anew. Each needs the right on the kind, in the namespace (or in all of them) that is meant.
"""

from kairship.instances.admission.people import (
    PEOPLE_WHO_CHANGE_THE_SPEC,
    PROPAGATE,
    may,
    may_for_each,
    namespace_of,
)
from kairship.instances.admission.policy import Policy, Target, Validation

_POLICY_GROUP = "policy.karmada.io"
_SELECTORS = {"selectors": "has(object.spec.resourceSelectors) ? object.spec.resourceSelectors : []"}
_EACH_NAMESPACE = namespace_of("{each}")

# A state that is preserved over a failover becomes labels of the object in the next cluster.
_ALIASES = (
    "!has(object.spec.failover) || ["
    "has(object.spec.failover.application) && has(object.spec.failover.application.statePreservation)"
    " ? object.spec.failover.application.statePreservation.rules : [],"
    "has(object.spec.failover.cluster) && has(object.spec.failover.cluster.statePreservation)"
    " ? object.spec.failover.cluster.statePreservation.rules : []"
    "].all(rules, rules.all(each, !each.aliasLabelName.matches('(karmada|kairship)[.]io')))"
)
_NO_RESERVED_ALIAS = Validation(
    _ALIASES,
    "spec.failover: an aliasLabelName must not be in karmada.io or kairship.io; choose a label of your own",
)

_SCALE_TARGET = "object.spec.scaleTargetRef"
_MAY_SCALE = may(
    "update",
    api_version=f"{_SCALE_TARGET}.apiVersion",
    kind=f"{_SCALE_TARGET}.kind",
    namespace="object.metadata.namespace",
    subresource="scale",
)
_MAY_CHANGE_AUTOSCALER = (
    "authorizer.group('autoscaling.karmada.io').resource('federatedhpas')"
    ".namespace(object.metadata.namespace).check('update').allowed()"
)
_NO_SCALE = (
    "spec.scaleTargetRef names an object that you may not scale: Karmada would scale it with its own rights. "
    "The right to change objects of that kind in this namespace allows it"
)

POLICIES = (
    Policy(
        name="kairship-propagation",
        asks_for_rights=True,
        targets=(Target(_POLICY_GROUP, ("propagationpolicies",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        variables=_SELECTORS,
        validations=(
            *may_for_each("selectors", PROPAGATE, namespace="object.metadata.namespace", what="spec.resourceSelectors"),
            _NO_RESERVED_ALIAS,
        ),
    ),
    Policy(
        name="kairship-cluster-propagation",
        asks_for_rights=True,
        targets=(Target(_POLICY_GROUP, ("clusterpropagationpolicies",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        variables=_SELECTORS,
        validations=(
            *may_for_each("selectors", PROPAGATE, namespace=_EACH_NAMESPACE, what="spec.resourceSelectors"),
            _NO_RESERVED_ALIAS,
        ),
    ),
    Policy(
        name="kairship-rebalancing",
        asks_for_rights=True,
        targets=(Target("apps.karmada.io", ("workloadrebalancers",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        variables={"workloads": "has(object.spec.workloads) ? object.spec.workloads : []"},
        validations=tuple(
            may_for_each("workloads", PROPAGATE, namespace=_EACH_NAMESPACE, what="spec.workloads"),
        ),
    ),
    Policy(
        name="kairship-autoscaling",
        asks_for_rights=True,
        targets=(Target("autoscaling.karmada.io", ("federatedhpas", "cronfederatedhpas")),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        validations=(
            Validation(
                f"{_SCALE_TARGET}.apiVersion.startsWith('autoscaling.karmada.io/')"
                f" ? {_MAY_CHANGE_AUTOSCALER} : {_MAY_SCALE}",
                _NO_SCALE,
            ),
        ),
    ),
    Policy(
        name="kairship-multi-cluster-services",
        targets=(Target("networking.karmada.io", ("multiclusterservices",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        validations=(
            Validation(
                "authorizer.group('').resource('services').namespace(object.metadata.namespace)"
                f".check('{PROPAGATE}').allowed()",
                "a MultiClusterService makes Karmada create Services in members: "
                "you need the right to create Services in this namespace",
            ),
        ),
    ),
)
