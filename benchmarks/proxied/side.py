"""The two sides that are compared, the native proxy and the API server behind it, each with a client of its own."""

import json
import ssl
import statistics
from collections.abc import Callable
from functools import partial

import psutil
from index import END, WATCH_LIST
from lean_client import Answer, LeanClient, cpu_of, measure

PATH = "/apis/apps/v1"
_LISTS, _WHOLE = 20, 5


class Side:
    """`path` is the prefix of the Kubernetes paths; `processes` are those that answer."""

    def __init__(
        self, url: str, tls: ssl.SSLContext, processes: list[psutil.Process], path: str = "", **headers: str
    ) -> None:
        self.client = LeanClient(url, tls, {"Accept": "application/json", **headers})
        self.path = path
        self._processes = processes

    def get(self, path: str, *, keep: bool = False) -> Answer:
        answer = self.client.get(self.path + path, keep=keep)
        assert answer.status == 200, (path, answer.status, answer.body[:300])
        return answer

    def watch_list(self, *, keep: bool = False) -> Answer:
        return self.client.get(f"{self.path}{PATH}/deployments?{WATCH_LIST}", until=END, keep=keep)

    def patch(self, path: str, value: int) -> Answer:
        body = json.dumps({"data": {"value": str(value)}}).encode()
        answer = self.client.send("PATCH", self.path + path, body, {"Content-Type": "application/merge-patch+json"})
        assert answer.status == 200, answer
        return answer

    def source(self, path: str) -> str:
        return self.client.get(self.path + path).headers.get("x-kairship-source", "")

    def cpu(self) -> float:
        return cpu_of(*self._processes)

    def memory(self) -> float:
        """The size of a reply in KB."""
        return sum(process.memory_info().rss for process in self._processes) / 1e3

    def lists(self, namespaces: int) -> dict[str, dict[str, float]]:
        """Milliseconds and server CPU of lists, by kind of list."""

        def reading(path: str) -> Callable[..., Answer]:
            return partial(self.get, PATH + path)

        return {
            "list a namespace": self._measure(reading(f"/namespaces/ns-{min(1, namespaces - 1)}/deployments"), _LISTS),
            "list by a rare label": self._measure(reading("/deployments?labelSelector=rare%3D7"), _LISTS),
            "list all": self._measure(reading("/deployments"), _WHOLE),
            "WatchList": self._measure(self.watch_list, _WHOLE),
        }

    def close(self) -> None:
        self.client.close()

    def _measure(self, work: Callable[..., Answer], times: int) -> dict[str, float]:
        return measure(work, times, *self._processes)


def by_turns(
    sides: dict[str, Side], work: Callable[[Side, int], Answer], *, turns: int, at_once: int = 1
) -> dict[str, dict[str, float]]:
    """Measures short requests of both sides in turns, so that both have the same load of disk and machine."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu = dict.fromkeys(sides, 0.0)
    for turn in range(turns):
        for name, side in sides.items():
            before = side.cpu()
            seconds[name] += [work(side, turn * at_once + number).seconds for number in range(at_once)]
            cpu[name] += side.cpu() - before
    return {
        name: {"p50_ms": statistics.median(taken) * 1e3, "cpu_ms": cpu[name] / len(taken) * 1e3}
        for name, taken in seconds.items()
    }
