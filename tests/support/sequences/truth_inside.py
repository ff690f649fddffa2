"""Compares the content of an instance and of its members with a lane."""

from typing import Any

import msgspec

from kairship.access import Binding
from kairship.access.catalogue.roles import BY_ID
from kairship.access.delivery.binding_store import BINDING
from kairship.access.scopes import PLATFORM
from kairship.controllers.access.desired import DesiredRbac, desired_rbac
from kairship.controllers.access.grants import collect_grants
from kairship.kube import Client, NotFound, kinds
from support.bindings import bind, on
from support.sequences.comparing import differ, name_of, names_of
from support.sequences.lane import Lane, Member
from support.sequences.workload import WORKLOAD

OURS = "kairship.io/access=true"
_RBAC = (kinds.CLUSTER_ROLES, kinds.CLUSTER_ROLE_BINDINGS, kinds.ROLE_BINDINGS)


async def desired_in(lane: Lane, inside: Client) -> DesiredRbac:
    namespaces = set(await names_of(inside, kinds.NAMESPACES))
    bindings = [
        bind(
            lane.persons[grant.who].id,
            BY_ID[grant.role],
            msgspec.structs.replace(on("x", grant.namespace or None), instance_uid=lane.uid),
        )
        for grant in lane.grants
    ]
    everywhere = [
        each for each in (await lane.world.typed(Binding).list(BINDING)).items if each.grant_scope == PLATFORM
    ]
    clusters = [member.name for member in lane.joined]
    return desired_rbac(
        collect_grants([*bindings, *everywhere], lane.uid), namespaces=namespaces, clusters=clusters, kinds=()
    )


async def in_the_instance(lane: Lane, inside: Client, desired: DesiredRbac) -> list[str]:
    joined = {member.name: member for member in lane.joined}
    known = {name_of(item): item for item in (await inside.list(kinds.CLUSTERS)).items}
    found = differ("clusters of Karmada", known, joined)
    tokens = [token for name in joined for token in (name, f"{name}-impersonator")]
    found += differ("tokens", await names_of(inside, kinds.SECRETS, namespace="karmada-cluster"), tokens)
    spaces = [name for name in await names_of(inside, kinds.NAMESPACES) if name.startswith("karmada-es-")]
    found += differ("execution namespaces", spaces, [f"karmada-es-{name}" for name in joined])
    found += differ("rights in the instance", await _rights(inside), _rights_in(desired.instance))
    for name in known.keys() & joined.keys():
        member, metadata, spec = joined[name], known[name]["metadata"], known[name]["spec"]
        if metadata.get("labels", {}).get("stage") != member.stage:
            found.append(f"label of {name}: {metadata.get('labels')}")
        if (spec["apiEndpoint"] == f"https://{member.relay.address}") != member.by_relay:
            found.append(f"address of {name}: {spec['apiEndpoint']}")
    works = len((await inside.list(kinds.WORKS, label_selector=OURS)).items)
    if works != len(desired.members) * len(joined):
        found.append(f"{works} Works instead of {len(desired.members)} for each of {sorted(joined)}")
    placed = await names_of(inside, kinds.DEPLOYMENTS, namespace="default")
    return found + differ("workloads", placed, [WORKLOAD] if lane.placed else [])


async def in_a_member(member: Member, lane: Lane, desired: DesiredRbac | None) -> list[str]:
    if member.left_behind:
        return []
    async with Client(member.cluster.connection, timeout=10) as client:
        rights = _rights_in(desired.members) if member.joined and desired is not None else set()
        found = differ(f"rights in {member.name}", await _rights(client), rights)
        accounts, tokens = await _accounts(client)
        account = f"karmada-{member.name}"
        found += differ(
            f"accounts in {member.name}", accounts, (account, "karmada-impersonator") if member.joined else ()
        )
        if len(tokens) != (2 if member.joined else 0):
            found.append(f"tokens in {member.name}: {tokens}")
        roles = [name for name in await names_of(client, kinds.CLUSTER_ROLES) if name.startswith("karmada")]
        wanted = (f"karmada-controller-manager:{account}", "karmada-impersonator") if member.joined else ()
        found += differ(f"roles in {member.name}", roles, wanted)
        running = True if member.joined and lane.placed else member.has_workload
        if running is not None:
            workloads = await names_of(client, kinds.DEPLOYMENTS, namespace="default")
            found += differ(f"workloads in {member.name}", workloads, [WORKLOAD] if running else [])
        return found


async def _accounts(member: Client) -> tuple[set[str], list[str]]:
    """Returns Karmada's service accounts and the Secrets with their tokens."""
    try:
        await member.get(kinds.NAMESPACES, "karmada-cluster")
    except NotFound:
        return set(), []
    accounts = await names_of(member, kinds.SERVICE_ACCOUNTS, namespace="karmada-cluster")
    return set(accounts) - {"default"}, await names_of(member, kinds.SECRETS, namespace="karmada-cluster")


async def _rights(client: Client) -> set[tuple[str, ...]]:
    """Returns our RBAC objects with their subjects."""
    found = set()
    for kind in _RBAC:
        for item in (await client.list(kind, label_selector=OURS)).items:
            subjects = (each["name"] for each in item.get("subjects") or ())
            found.add((kind.kind, item["metadata"].get("namespace", ""), name_of(item), *subjects))
    return found


def _rights_in(desired: Any) -> set[tuple[str, ...]]:
    return {
        (key.kind, key.namespace, key.name, *(each["name"] for each in content.get("subjects", ())))
        for key, content in desired.items()
    }
