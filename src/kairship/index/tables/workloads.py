"""The cells of workloads: Deployments and the like, Jobs and CronJobs."""

from kairship.index.tables.ages import human, seconds, since
from kairship.index.tables.cells import NONE, UNSET, condition, containers_of, labels_text, selector_text
from kairship.index.tables.layout import Cell, Object

_WIDE = ("Containers", "Images", "Selector")
DEPLOYMENT = ("Name", "Ready", "Up-to-date", "Available", "Age", *_WIDE)
REPLICA_SET = ("Name", "Desired", "Current", "Ready", "Age", *_WIDE)
STATEFUL_SET = ("Name", "Ready", "Age", "Containers", "Images")
DAEMON_SET = ("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age", *_WIDE)
JOB = ("Name", "Status", "Completions", "Duration", "Age", *_WIDE)
CRON_JOB = ("Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", *_WIDE)
DISRUPTION_BUDGET = ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age")
CONTROLLER_REVISION = ("Name", "Controller", "Revision", "Age")


def deployment(obj: Object) -> list[Cell]:
    spec, status = obj.spec, obj.status
    return [
        obj.metadata.name,
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        since(obj.metadata.creation_timestamp),
        *containers_of(spec.get("template")),
        selector_text(spec.get("selector")),
    ]


def replica_set(obj: Object) -> list[Cell]:
    spec, status = obj.spec, obj.status
    return [
        obj.metadata.name,
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        since(obj.metadata.creation_timestamp),
        *containers_of(spec.get("template")),
        selector_text(spec.get("selector")) or NONE,
    ]


def stateful_set(obj: Object) -> list[Cell]:
    return [
        obj.metadata.name,
        f"{obj.status.get('readyReplicas', 0)}/{obj.spec.get('replicas', 0)}",
        since(obj.metadata.creation_timestamp),
        *containers_of(obj.spec.get("template")),
    ]


def daemon_set(obj: Object) -> list[Cell]:
    spec, status = obj.spec, obj.status
    counted = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady")
    return [
        obj.metadata.name,
        *(status.get(each, 0) for each in (*counted, "updatedNumberScheduled", "numberAvailable")),
        labels_text((spec.get("template") or {}).get("spec", {}).get("nodeSelector")),
        since(obj.metadata.creation_timestamp),
        *containers_of(spec.get("template")),
        selector_text(spec.get("selector")) or NONE,
    ]


def job(obj: Object) -> list[Cell]:
    return [
        obj.metadata.name,
        _job_state(obj),
        _completions(obj),
        _duration(obj),
        since(obj.metadata.creation_timestamp),
        *containers_of(obj.spec.get("template")),
        selector_text(obj.spec.get("selector")) or NONE,
    ]


def cron_job(obj: Object) -> list[Cell]:
    spec, status = obj.spec, obj.status
    made = (spec.get("jobTemplate") or {}).get("spec") or {}
    suspend = spec.get("suspend")
    return [
        obj.metadata.name,
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        UNSET if suspend is None else str(suspend),
        len(status.get("active") or ()),
        since(status["lastScheduleTime"]) if status.get("lastScheduleTime") else NONE,
        since(obj.metadata.creation_timestamp),
        *containers_of(made.get("template")),
        selector_text(made.get("selector")) or NONE,
    ]


def disruption_budget(obj: Object) -> list[Cell]:
    return [
        obj.metadata.name,
        str(obj.spec.get("minAvailable", "N/A")),
        str(obj.spec.get("maxUnavailable", "N/A")),
        obj.status.get("disruptionsAllowed", 0),
        since(obj.metadata.creation_timestamp),
    ]


def controller_revision(obj: Object) -> list[Cell]:
    owner = next((each for each in obj.metadata.owner_references if each.get("controller")), None)
    named = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        named = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [obj.metadata.name, named, obj.revision, since(obj.metadata.creation_timestamp)]


def _job_state(obj: Object) -> str:
    conditions = obj.status.get("conditions")
    for kind in ("Complete", "Failed"):
        if condition(conditions, kind) == "True":
            return kind
    if obj.metadata.deletion_timestamp is not None:
        return "Terminating"
    later = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((kind for kind in later if condition(conditions, kind) == "True"), "Running")


def _completions(obj: Object) -> str:
    done, wanted, at_once = obj.status.get("succeeded", 0), obj.spec.get("completions"), obj.spec.get("parallelism", 0)
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {at_once}" if at_once > 1 else f"{done}/1"


def _duration(obj: Object) -> str:
    begun, ended = obj.status.get("startTime"), obj.status.get("completionTime")
    if not begun:
        return ""
    return human(seconds(ended) - seconds(begun)) if ended else since(begun)
