"""The account by which the collector reads an instance: it may read every kind, and do nothing else.

In RBAC `*` would match subresources too, among them `clusters/proxy`, which leads into the members. So the role names
every kind that the instance serves and is updated when they change. All functions are idempotent.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from kairship.controllers.instance_cache import KindDefinition
from kairship.instances.account_tokens import AccountToken, issue_token
from kairship.kube import Catalogue, Client, NotFound, kinds

ACCOUNT = "kairship-collector"
NAMESPACE = "kairship-system"
_READ = ("get", "list", "watch")
_RBAC = "rbac.authorization.k8s.io"

Rule = dict[str, Any]

_OWN_STATE: Rule = {
    "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/readyz", "/version"],
    "verbs": ["get"],
}


class _Role(msgspec.Struct, frozen=True):
    rules: list[Rule] | None = None


async def ensure(client: Client, definitions: Iterable[KindDefinition], *, field_manager: str) -> None:
    """Creates or updates the account and its role for the kinds that the instance serves now."""
    role = await _role(client)
    known = role.rules or [] if role is not None else []
    rules = rules_for(await client.discovery.catalogue(), definitions, known)
    if role is None:
        await client.apply(
            kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}}, field_manager=field_manager, timeout=_TIMEOUT
        )
    if rules != known:
        manifest = {"metadata": {"name": ACCOUNT}, "rules": rules}
        await client.apply(kinds.CLUSTER_ROLES, manifest, field_manager=field_manager, timeout=_TIMEOUT)
    account = {"metadata": {"name": ACCOUNT, "namespace": NAMESPACE}, "automountServiceAccountToken": False}
    await client.apply(kinds.SERVICE_ACCOUNTS, account, field_manager=field_manager, timeout=_TIMEOUT)
    binding = {
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    await client.apply(kinds.CLUSTER_ROLE_BINDINGS, binding, field_manager=field_manager, timeout=_TIMEOUT)


async def token(client: Client, *, seconds: int) -> AccountToken:
    """Requests a token of the account."""
    return await issue_token(client, namespace=NAMESPACE, account=ACCOUNT, seconds=seconds, timeout=_TIMEOUT)


def rules_for(catalogue: Catalogue, definitions: Iterable[KindDefinition], known: Iterable[Rule]) -> list[Rule]:
    """The rules to read every kind that can be listed and watched. The known rules of a group that does not answer
    stay."""
    readable: defaultdict[str, set[str]] = defaultdict(set)
    for served in catalogue.resources:
        if {"list", "watch"} <= served.verbs:
            readable[served.resource.group].add(served.resource.plural)
    # A kind is served a moment after its definition is created, so discovery may not have it yet.
    for definition in definitions:
        readable[definition.spec.group].add(definition.spec.names.plural)
    silent = {version.rpartition("/")[0] for version in catalogue.failed}
    for rule in known:
        for group in silent.intersection(rule.get("apiGroups", ())):
            readable[group].update(rule["resources"])
    rules = [
        {"apiGroups": [group], "resources": sorted(plurals), "verbs": list(_READ)}
        for group, plurals in sorted(readable.items())
    ]
    return [*rules, _OWN_STATE]


async def _role(client: Client) -> _Role | None:
    try:
        return await client.typed(_Role).get(kinds.CLUSTER_ROLES, ACCOUNT, timeout=_TIMEOUT)
    except NotFound:
        return None


_TIMEOUT = 10.0
