"""Which parts of an object an override may change.

An override changes an object after the object was admitted as a template and before Karmada applies it to a member. The
identity of the object (API version, kind, name, namespace, owners, finalizers, and the labels of Karmada and of the
plane) stays as it is; the content needs the right to change objects of this kind.
"""

from kairship.instances.admission.people import (
    OVERRIDE,
    PEOPLE_WHO_CHANGE_THE_SPEC,
    may_for_each,
    namespace_of,
)
from kairship.instances.admission.policy import Policy, Target, Validation

_GROUP = "policy.karmada.io"
_RESERVED_KEY = "(karmada|kairship)[.]io"

_VARIABLES = {
    "selectors": "has(object.spec.resourceSelectors) ? object.spec.resourceSelectors : []",
    "overriders": "(has(object.spec.overrideRules) ? object.spec.overrideRules.map(rule, rule.overriders) : [])"
    " + (has(object.spec.overriders) ? [object.spec.overriders] : [])",
}


def _is_open(path: str) -> str:
    """Whether a JSON pointer leads to content, or to a single label or annotation that is the person's own.

    The first token has only plain characters, so that no escape and no empty token hides what it names. Keys differ by
    case, but whoever decodes the object later might not tell `Kind` from `kind`.
    """
    return (
        f"(({path}.matches('^/[A-Za-z0-9_.-]+(/.*)?$')"
        f" && !{path}.matches('(?i)^/(apiversion|kind|metadata|status)(/.*)?$'))"
        f" || ({path}.matches('^/metadata/(labels|annotations)/[^/]+$') && !{path}.matches('{_RESERVED_KEY}')))"
    )


def _each(overrider: str, holds: str, message: str) -> Validation:
    """`holds` is about `each`, one overrider of this sort."""
    return Validation(
        f"variables.overriders.all(it, !has(it.{overrider}) || it.{overrider}.all(each, {holds}))", message
    )


def _paths(overrider: str, path: str, *, unless: str = "") -> Validation:
    condition = f"{unless} || " if unless else ""
    return _each(
        overrider,
        f"{condition}{_is_open(path)}",
        f"{overrider}: an override may change the content of an object (such as /spec/… or /data/…) and single labels "
        "and annotations outside karmada.io and kairship.io, but not apiVersion, kind, other metadata or status",
    )


def _keys(overrider: str) -> Validation:
    return _each(
        overrider,
        f"each.value.all(key, !key.matches('{_RESERVED_KEY}'))",
        f"{overrider}: labels and annotations of karmada.io and kairship.io are not for overrides; remove them",
    )


_CONTENT = (
    Validation(
        "size(variables.selectors) > 0",
        "spec.resourceSelectors is empty, which means every kind: name the kinds that this policy overrides",
    ),
    _paths("plaintext", "each.path"),
    _paths("imageOverrider", "each.predicate.path", unless="!has(each.predicate)"),
    _paths("fieldOverrider", "each.fieldPath"),
    _keys("labelsOverrider"),
    _keys("annotationsOverrider"),
)

POLICIES = (
    Policy(
        name="kairship-overrides",
        asks_for_rights=True,
        targets=(Target(_GROUP, ("overridepolicies",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        variables=_VARIABLES,
        validations=(
            *_CONTENT,
            *may_for_each("selectors", OVERRIDE, namespace="object.metadata.namespace", what="spec.resourceSelectors"),
        ),
    ),
    Policy(
        name="kairship-cluster-overrides",
        asks_for_rights=True,
        targets=(Target(_GROUP, ("clusteroverridepolicies",)),),
        conditions=PEOPLE_WHO_CHANGE_THE_SPEC,
        variables=_VARIABLES,
        validations=(
            *_CONTENT,
            *may_for_each("selectors", OVERRIDE, namespace=namespace_of("{each}"), what="spec.resourceSelectors"),
        ),
    ),
)
