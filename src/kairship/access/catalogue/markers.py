"""Marker verbs: verbs in RBAC that no API server asks for by itself.

Karmada carries out in members, with its own full rights, what a policy in an instance says. So that no policy does
more than its author may do, admission policies in the instance ask with the authorizer of CEL whether the author has
the verb `propagate` on the kinds that a propagation policy selects, and `override` on those that an override policy
changes. RBAC gives `propagate` with the right to create objects of a kind, and `override` with the right to update
them.

For some kinds that is not enough, because the API server of the instance checks more than the right to write them, and
nothing checks it in the member: there the markers are permissions of their own (`Kind.propagator`, `Kind.overrider`).

A marker gives nothing by itself. So a right on a whole instance gives markers in all namespaces at once, those of the
system included, and members do not get them.
"""

PROPAGATE = "propagate"
OVERRIDE = "override"

MARKERS = {"create": PROPAGATE, "update": OVERRIDE}
"""The marker verb that comes with an action in permission names."""


def is_marker(verb: str) -> bool:
    return verb in {PROPAGATE, OVERRIDE}
