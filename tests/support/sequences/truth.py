"""Compares the plane with a lane, and returns the differences in words.

It compares everything that an action can change: the global cluster, the instance, the members, the index, the tables
of global management, and the access of people through the entrance. All members must be alive.
"""

import base64

from kairship.access.delivery.binding_store import BINDING
from kairship.controllers.global_cluster import CLUSTER, INSTANCE, MEMBERSHIP
from kairship.controllers.registry.reconciler import REGISTRATION
from kairship.index.sqlite import clusters as indexed
from kairship.kube import Client, Connection, kinds
from kairship.resources import NAMESPACE, Instance
from support.sequences.comparing import conditions_of, differ, labels_of, name_of
from support.sequences.lane import Lane
from support.sequences.retrying_client import NotDoneError
from support.sequences.tables import Tables
from support.sequences.truth_inside import desired_in, in_a_member, in_the_instance

_CREDENTIAL_OF = "kpanda.io/credential-of"


async def deviations(lane: Lane) -> list[str]:
    found = await _in_the_global_cluster(lane)
    found += await _in_the_tables(lane)
    desired = None
    if lane.uid:
        found += await _of_the_instance(lane)
        async with await _inside(lane) as inside:
            desired = await desired_in(lane, inside)
            found += await in_the_instance(lane, inside, desired)
    for member in lane.members:
        found += await in_a_member(member, lane, desired)
    return found + await _through_the_entrance(lane)


async def _inside(lane: Lane) -> Client:
    """Returns a client of the instance with the Secret that its status names."""
    reference = (await lane.world.typed(Instance).get(INSTANCE, lane.name)).status.credentials
    if reference is None:
        raise NotDoneError("the instance has no credentials yet")
    secret = await lane.world.get(kinds.SECRETS, reference.name, namespace=NAMESPACE)
    return Client(Connection.from_kubeconfig(base64.b64decode(secret["data"]["kubeconfig"])), timeout=10)


async def _in_the_global_cluster(lane: Lane) -> list[str]:
    world, names = lane.world, {member.name for member in lane.members}
    joined = [member.name for member in lane.joined]
    memberships = {name_of(item): item for item in (await world.list(MEMBERSHIP)).items if name_of(item) in names}
    found = differ("memberships", memberships, joined)
    for name, item in memberships.items():
        wanted = dict.fromkeys(("Joined", "Ready", "CredentialsCurrent"), "True")
        conditions = conditions_of(item)
        if any(conditions.get(kind) != status for kind, status in wanted.items()):
            found.append(f"membership {name}: {conditions}")
    virtual = f"k-{lane.name}"
    clusters = {name_of(item): item for item in (await world.list(CLUSTER)).items if name_of(item) in {*names, virtual}}
    registered = {member.name for member in lane.members if member.registered}
    found += differ("clusters", clusters, {*registered, virtual} if lane.uid else registered)
    uids = {item["metadata"]["uid"] for item in clusters.values()}
    found += differ("index", uids & indexed(lane.plane.home.index), uids)
    secrets = (await world.list(kinds.SECRETS, namespace=NAMESPACE)).items
    credentials = [labels_of(each).get(_CREDENTIAL_OF, "") for each in secrets]
    found += differ("credentials", names.intersection(credentials), registered)
    ours = [
        name
        for each in secrets
        if (name := name_of(each)).startswith((f"instance-{lane.name}-", f"collector-{lane.name}-"))
    ]
    found += differ(
        "secrets", ours, [f"{kind}-{lane.name}-{lane.uid[:8]}" for kind in ("instance", "collector") if lane.uid]
    )
    registrations = {
        name_of(item): item["spec"]["uid"]
        for item in (await world.list(REGISTRATION)).items
        if lane.name in name_of(item).split(".")
    }
    wanted_registrations = [f"kairship.instance.{lane.name}"] if lane.uid else []
    if lane.held:
        wanted_registrations.append(f"kairship.namespace.{lane.name}.default")
    found += differ("registrations", registrations, wanted_registrations)
    if lane.uid and registrations.get(f"kairship.instance.{lane.name}") not in (None, lane.uid):
        found.append("the registration is of an earlier instance")
    return found + await _bindings(lane)


async def _bindings(lane: Lane) -> list[str]:
    stored = [
        item
        for item in (await lane.world.list(BINDING)).items
        if item["spec"]["scope"].get("instance") == lane.name and not item["spec"].get("revoked")
    ]
    held = {
        (
            item["spec"]["subject"]["id"],
            item["spec"]["role"]["id"],
            item["spec"]["scope"].get("namespace", ""),
            item["spec"]["scope"]["instanceUid"],
        )
        for item in stored
    }
    wanted = {(lane.persons[grant.who].id, grant.role, grant.namespace, lane.uid) for grant in lane.grants}
    found = differ("bindings", held, wanted)
    for item in stored:
        if (conditions := conditions_of(item)).get("Applied") != "True" or conditions.get("MembersApplied") != "True":
            found.append(f"binding {name_of(item)}: {conditions}")
    return found


async def _in_the_tables(lane: Lane) -> list[str]:
    tables = Tables.read(lane.plane.home.ghippo / "ghippo.db")
    known = [tables.resources[lane.name]] if lane.name in tables.resources else []
    found = differ("registered with global management", known, [lane.uid] if lane.uid else [])
    rows = {row[:3] for row in tables.bindings if row[3] == lane.uid and lane.uid}
    wanted = {(lane.persons[grant.who].id, grant.role, grant.namespace) for grant in lane.grants}
    found += differ("rows of bindings", rows, wanted)
    return found + differ(
        "held by the workspace", tables.held.get(lane.workspace, set()), {(lane.uid, "default")} if lane.held else set()
    )


async def _of_the_instance(lane: Lane) -> list[str]:
    instance = await lane.world.get(INSTANCE, lane.name)
    status = instance.get("status", {})
    summary = status.get("summary") or {}
    clusters = summary.get("clusters", {})
    workloads = summary.get("workloads", {}).get("Deployment", {})
    wanted = {
        "uid": lane.uid,
        "alias": lane.alias,
        "state": "RUNNING",
        "clusters": (len(lane.joined), len(lane.joined)),
        "workloads": int(lane.placed),
    }
    shown = {
        "uid": instance["metadata"]["uid"],
        "alias": instance["spec"].get("alias", ""),
        "state": status.get("state"),
        "clusters": (clusters.get("total", 0), clusters.get("ready", 0)),
        "workloads": workloads.get("total", 0),
    }
    virtual = await lane.world.get(CLUSTER, f"k-{lane.name}")
    found = [f"{what}: {shown[what]} instead of {wanted[what]}" for what in wanted if shown[what] != wanted[what]]
    if labels_of(virtual).get("kairship.io/instance-uid") != lane.uid or virtual["spec"].get("alias", "") != lane.alias:
        found.append(f"the virtual cluster is {labels_of(virtual)}, {virtual['spec'].get('alias')}")
    return found


async def _through_the_entrance(lane: Lane) -> list[str]:
    """Compares the access of people with their grants, in the instance and in its members."""
    found = []
    below = "api/v1/namespaces/default/configmaps"
    for who, person in lane.persons.items():
        bound = any(grant.who == who for grant in lane.grants)
        paths = {f"{lane.path}/proxy/{below}": bound}
        for member in lane.members:
            paths[f"{lane.path}/clusters/{member.name}/proxy/{below}"] = bound and member.joined
        for path, may in paths.items():
            status = (await person.get(path)).status
            if (status == 200) != may or status >= 500:
                found.append(f"{who} is answered {status} at {path}")
    return found
