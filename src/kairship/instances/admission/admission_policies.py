"""All admission policies of an instance, and the probe that shows that they are in effect.

An API server takes up new policies about a second after they were stored. The probe is a policy that refuses one named
ConfigMap with the revision of all policies in its message. The probe is written last, and an API server takes up all
stored policies together: once it refuses a dry run with the current revision, all policies hold.
"""

import hashlib
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from kairship.instances.admission import overrides, propagation, protected, reserved_metadata, works
from kairship.instances.admission.people import guess_plural
from kairship.instances.admission.policy import CREATE, Plurals, Policy, Target, Validation
from kairship.kube import Client, Resource, kinds

_ENFORCED = (
    *propagation.POLICIES,
    *overrides.POLICIES,
    *reserved_metadata.POLICIES,
    *protected.POLICIES,
    *works.POLICIES,
)

_IRREGULAR = {"/Endpoints": "endpoints"}
_NAME = re.compile(r"[A-Za-z0-9.-]+")
_MOST_IRREGULAR = 500
"""Kubernetes bounds the length of an expression."""

REVISION = hashlib.sha256(msgspec.json.encode([each.manifests({}) for each in _ENFORCED])).hexdigest()[:16]
"""Identifies the content of all policies, apart from the kinds that an instance has."""

PROBE = "kairship-admission-probe"
_PROBE_NAMESPACE = "kube-system"

POLICIES = (
    *_ENFORCED,
    Policy(
        name=PROBE,
        targets=(Target("", ("configmaps",), (CREATE,)),),
        conditions={"probe": f"request.namespace == '{_PROBE_NAMESPACE}' && request.name == '{PROBE}'"},
        validations=(Validation("false", f"admission policies {REVISION} are in effect"),),
    ),
)


def irregular_plurals(kinds_served: Iterable[tuple[str, str, str]]) -> Plurals:
    """The exceptions among custom kinds, each given as group, kind and plural. Names that are none are left out."""
    found = dict(_IRREGULAR)
    for group, kind, plural in sorted(kinds_served):
        plain = all(_NAME.fullmatch(part) for part in (group, kind, plural))
        if plain and plural != guess_plural(kind) and len(found) < _MOST_IRREGULAR:
            found[f"{group}/{kind}"] = plural
    return found


def manifests(plurals: Plurals = _IRREGULAR) -> list[tuple[Resource, dict[str, Any]]]:
    """All objects, in the order in which they have to be written."""
    return [manifest for policy in POLICIES for manifest in policy.manifests(plurals)]


async def probe(client: Client, *, timeout: float) -> bool:
    """Whether the API server that answers has all policies in effect."""
    reply = await client.request(
        "POST",
        kinds.CONFIGMAPS.path(namespace=_PROBE_NAMESPACE),
        params={"dryRun": "All"},
        body=msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PROBE}}),
        headers={"Content-Type": "application/json"},
        timeout=timeout,
    )
    return reply.status == HTTPStatus.FORBIDDEN and REVISION.encode() in reply.body
