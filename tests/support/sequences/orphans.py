"""Finds objects, files and processes of a plane whose owner no longer exists.

Possible orphans are read first and owners afterwards, so that an object that is created in between has its owner.
"""

from kairship.access.delivery.binding_store import BINDING
from kairship.controllers.global_cluster import CLUSTER, INSTANCE, MEMBERSHIP
from kairship.controllers.registry.reconciler import REGISTRATION
from kairship.embedded import EmbeddedPlane
from kairship.index.sqlite import clusters as indexed
from kairship.kpanda.index_stores import EVENTS
from kairship.kube import Client, Object, Resource, kinds
from kairship.resources import NAMESPACE
from support.sequences.comparing import name_of
from support.sequences.tables import Tables

_INSTANCE = "kairship.io/instance-uid"
_COLLECTOR = "kairship.io/collector-of-uid"
_CREDENTIAL_OF = "kpanda.io/credential-of"


async def orphans(plane: EmbeddedPlane, world: Client) -> list[str]:
    home, tables = plane.home, Tables.read(plane.home.ghippo / "ghippo.db")
    index = (indexed(home.index) - {EVENTS}) | indexed(home.index / EVENTS)
    folders = {path.name for path in home.planes.iterdir()}
    groups = {status.name.partition("/")[0] for status in await plane.supervisor.status()}
    secrets = (await world.list(kinds.SECRETS, namespace=NAMESPACE)).items
    registrations = (await world.list(REGISTRATION)).items
    bindings = [each for each in (await world.list(BINDING)).items if not each["spec"].get("revoked")]
    memberships = await _by_name(world, MEMBERSHIP)
    clusters, instances = await _by_name(world, CLUSTER), await _by_name(world, INSTANCE)
    cluster_uids, instance_uids = set(clusters.values()), set(instances.values())
    own = {status.name.partition("/")[0] for status in await plane.supervisor.status()}
    found = [f"index of {uid}" for uid in index - cluster_uids]
    found += [f"data of {uid}" for uid in folders if _is_instance(plane, uid) and uid not in instance_uids]
    found += [
        f"processes {group}"
        for group in groups & own
        if group.startswith("instance-") and group.removeprefix("instance-") not in instances
    ]
    found += [f"Secret {name_of(each)}" for each in secrets if _is_orphaned(each, clusters, instance_uids)]
    found += [f"registration {name_of(each)}" for each in registrations if _instance_of(each) not in instances]
    found += [f"membership {name}" for name in memberships if name not in clusters]
    found += [
        f"binding {name_of(each)}"
        for each in bindings
        if each["spec"]["scope"].get("instanceUid") not in {None, *instance_uids}
    ]
    found += [f"registered with global management: {name}" for name in tables.resources.keys() - instances.keys()]
    known = set(tables.resources.values())
    return found + [f"row of a binding on {row[3]}" for row in tables.bindings if row[3] not in known]


def _is_instance(plane: EmbeddedPlane, uid: str) -> bool:
    """Whether a folder belongs to an instance: then it has the driver's record."""
    return (plane.home.planes / uid / "instance.json").exists()


def _is_orphaned(secret: Object, clusters: dict[str, str], instances: set[str]) -> bool:
    labels = secret["metadata"].get("labels") or {}
    if labels.get(_CREDENTIAL_OF, "") not in {"", *clusters}:
        return True
    return any(labels.get(label, "") not in {"", *instances} for label in (_INSTANCE, _COLLECTOR))


def _instance_of(registration: Object) -> str:
    spec = registration["spec"]
    return str(spec["parent"]["name"] if "parent" in spec else spec["resource"])


async def _by_name(world: Client, kind: Resource) -> dict[str, str]:
    return {name_of(item): item["metadata"]["uid"] for item in (await world.list(kind)).items}
