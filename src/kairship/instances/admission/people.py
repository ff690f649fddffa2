"""Whom the policies hold, and how the policies ask for rights on kinds. All expressions are CEL.

A policy asks the API server's own authorizer, so it knows the rights of the very moment. One expression may ask twice
and one policy some twenty-eight times, because Kubernetes bounds the cost of expressions. So each element of a list of
kinds is asked about in an expression of its own, and longer lists are refused.
"""

from collections.abc import Iterator

from kairship.instances.admission.policy import Validation

MOST_SELECTORS = 20
"""The longest list of kinds in one policy object of a person."""

PROPAGATE = "propagate"
"""The verb that a person needs on a kind to have Karmada create its objects in members."""

OVERRIDE = "override"
"""The verb that a person needs on a kind to have Karmada change its objects on their way to members."""

_ORDINARY = {PROPAGATE: "create", OVERRIDE: "change"}

_SYSTEM_ACCOUNTS = "^system:serviceaccount:(kube-system|karmada-system|kairship-system):"

# Whoever may impersonate users and groups can act as anybody, so that no rule about people holds them: Karmada itself,
# the plane, the operator. Kubernetes' own components are `system:` identities other than service accounts of people.
IS_PERSON = (
    "!('system:masters' in request.userInfo.groups)"
    " && !(request.userInfo.username.startsWith('system:')"
    " && !request.userInfo.username.startsWith('system:serviceaccount:'))"
    f" && !request.userInfo.username.matches('{_SYSTEM_ACCOUNTS}')"
    " && !(authorizer.group('').resource('users').check('impersonate').allowed()"
    " && authorizer.group('').resource('groups').check('impersonate').allowed())"
)

SPEC_CHANGES = "request.operation != 'UPDATE' || object.spec != oldObject.spec"
"""Karmada and its clients change metadata all the time, which needs no new look at what was admitted before."""

PEOPLE = {"person": IS_PERSON}
PEOPLE_WHO_CHANGE_THE_SPEC = {"person": IS_PERSON, "spec-changes": SPEC_CHANGES}


def group_of(api_version: str) -> str:
    return f"({api_version}.contains('/') ? {api_version}.split('/')[0] : '')"


def plural_of(api_version: str, kind: str) -> str:
    """The resource of a kind. Expressions cannot look it up: it is guessed as `guess_plural` does, with exceptions."""
    key, lower = f"({group_of(api_version)} + '/' + {kind})", f"{kind}.lowerAscii()"
    return (
        f"({key} in variables.plurals ? variables.plurals[{key}] : {lower}.endsWith('s') ? {lower} + 'es' : "
        f"{lower}.endsWith('y') ? {lower}.substring(0, size({lower}) - 1) + 'ies' : {lower} + 's')"
    )


def guess_plural(kind: str) -> str:
    """The resource that Kubernetes guesses from a kind."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def may(verb: str, *, api_version: str, kind: str, namespace: str, subresource: str = "") -> str:
    """Whether the caller has a verb on a kind. An empty namespace means all of them."""
    part = f".subresource('{subresource}')" if subresource else ""
    return (
        f"authorizer.group({group_of(api_version)}).resource({plural_of(api_version, kind)}){part}"
        f".namespace({namespace}).check('{verb}').allowed()"
    )


def may_for_each(variable: str, verb: str, *, namespace: str, what: str) -> Iterator[Validation]:
    """The caller has a verb on the kind of each element of a list. `namespace` may use `{each}`, the element."""
    listed = f"variables.{variable}"
    yield Validation(
        f"size({listed}) <= {MOST_SELECTORS}",
        f"{what} may name at most {MOST_SELECTORS} kinds or objects; use several of them",
    )
    for index in range(MOST_SELECTORS):
        each = f"{listed}[{index}]"
        right = may(
            verb,
            api_version=f"{each}.apiVersion",
            kind=f"{each}.kind",
            namespace=namespace.format(each=each),
        )
        why = (
            f"that you may not {verb} here: Karmada would do with all its rights what you have no right to do. The "
            f"right to {_ORDINARY[verb]} objects of this kind, in every namespace that is selected, allows it"
        )
        yield Validation(
            f"size({listed}) <= {index} || {right}",
            f"{what} names a kind {why}",
            f"'{what} names the kind ' + {each}.kind + ' of ' + {each}.apiVersion + ' {why}'",
        )


def namespace_of(each: str) -> str:
    return f"(has({each}.namespace) ? {each}.namespace : '')"
