"""The cells of a pod. Its status is derived from its containers, in the order in which API servers examine them."""

from collections.abc import Mapping
from typing import Any

from kairship.index.tables.ages import since
from kairship.index.tables.cells import NONE, condition
from kairship.index.tables.layout import Cell, Object

COLUMNS = ("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates")
_ENDED = {
    "Succeeded": (
        b',"conditions":[{"type":"Completed","status":"True","reason":"Succeeded",'
        b'"message":"The pod has completed successfully."}]'
    ),
    "Failed": b',"conditions":[{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}]',
}


def pod(obj: Object) -> list[Cell]:
    state = _State(obj)
    ips = obj.status.get("podIPs") or ()
    return [
        obj.metadata.name,
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarts_text,
        since(obj.metadata.creation_timestamp),
        (ips[0].get("ip") if ips else "") or NONE,
        obj.spec.get("nodeName") or NONE,
        obj.status.get("nominatedNodeName") or NONE,
        _gates(obj),
    ]


def conditions_of_row(obj: Object) -> bytes:
    return _ENDED.get(obj.status.get("phase", ""), b"")


def _gates(obj: Object) -> str:
    gates = obj.spec.get("readinessGates") or ()
    if not gates:
        return NONE
    held = sum(condition(obj.status.get("conditions"), gate["conditionType"]) == "True" for gate in gates)
    return f"{held}/{len(gates)}"


class _State:
    def __init__(self, obj: Object) -> None:
        self._spec, self._status = obj.spec, obj.status
        self._sidecars = {
            each["name"] for each in self._spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
        }
        self.total = len(self._spec.get("containers") or ()) + len(self._sidecars)
        self.ready = 0
        self.reason = self._status.get("reason") or self._status.get("phase", "")
        self._restarts = 0
        self._restarted = ""
        self._seen_sidecars: list[Mapping[str, Any]] = []
        conditions = self._status.get("conditions") or ()
        if any(each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions):
            self.reason = "SchedulingGated"
        initializing = self._examine_init_containers()
        if not initializing or condition(conditions, "Initialized") == "True":
            self._examine_containers()
        self._examine_deletion(obj)

    @property
    def restarts_text(self) -> str:
        if self._restarts and self._restarted:
            return f"{self._restarts} ({since(self._restarted)} ago)"
        return str(self._restarts)

    def _examine_init_containers(self) -> bool:
        """Whether an init container is not done. The first such container gives the pod's status."""
        for number, status in enumerate(self._status.get("initContainerStatuses") or ()):
            self._count(status)
            if status["name"] in self._sidecars:
                self._seen_sidecars.append(status)
            if self._is_done(status):
                continue
            self.reason = self._initializing(number, status)
            return True
        return False

    def _is_done(self, status: Mapping[str, Any]) -> bool:
        ended = _in(status, "state", "terminated")
        if ended is not None and not ended.get("exitCode"):
            return True
        if status["name"] in self._sidecars and status.get("started"):
            self.ready += bool(status.get("ready"))
            return True
        return False

    def _initializing(self, number: int, status: Mapping[str, Any]) -> str:
        ended, waiting = _in(status, "state", "terminated"), _in(status, "state", "waiting")
        if ended is not None:
            return f"Init:{_end(ended)}"
        if waiting is not None and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{number}/{len(self._spec.get('initContainers') or ())}"

    def _examine_containers(self) -> None:
        self._restarts, self._restarted = 0, ""
        for status in self._seen_sidecars:
            self._count(status)
        running, failure = False, ""
        for status in reversed(self._status.get("containerStatuses") or ()):
            self._count(status)
            waiting, ended = _in(status, "state", "waiting"), _in(status, "state", "terminated")
            if waiting is not None and waiting.get("reason"):
                self.reason = waiting["reason"]
            elif ended is not None:
                self.reason = _end(ended)
                failure = self.reason if ended.get("exitCode") else failure
            elif status.get("ready") and _in(status, "state", "running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and condition(self._status.get("conditions"), "Ready") == "True":
                self.reason = "Running"
            elif failure or running:
                self.reason = failure or "NotReady"

    def _count(self, status: Mapping[str, Any]) -> None:
        self._restarts += status.get("restartCount", 0)
        last = _in(status, "lastState", "terminated")
        if last is not None:
            self._restarted = max(self._restarted, last.get("finishedAt") or "")

    def _examine_deletion(self, obj: Object) -> None:
        if obj.metadata.deletion_timestamp is None:
            return
        if self._status.get("reason") == "NodeLost":
            self.reason = "Unknown"
        elif self._status.get("phase") not in {"Succeeded", "Failed"}:
            self.reason = "Terminating"


def _in(status: Mapping[str, Any], which: str, state: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (status.get(which) or {}).get(state)
    return found


def _end(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
