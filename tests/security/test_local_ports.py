"""Ports of the machine: whoever reaches loopback learns nothing of the plane from the processes behind them.

Also: a webhook that a user enters does not make global management send requests to loopback.
"""

import aiohttp
from support.entrance_process import entrance_of
from support.waiting import eventually

from kairship.embedded import EmbeddedPlane, plane_processes

OURS = {
    plane_processes.APISERVER,
    plane_processes.CONTROLLER_MANAGER,
    plane_processes.GHIPPO,
    plane_processes.KPANDA,
}
TIMEOUT = aiohttp.ClientTimeout(total=30)


async def test_metrics_and_profiles_are_not_for_everybody(plane: EmbeddedPlane) -> None:
    """Every port of ours and of kwok, over HTTP: metrics of ours name clusters, and profiles show memory."""
    token = (plane.home.processes / "metrics.token").read_text()
    statuses = await plane.supervisor.status()
    serve_metrics = set()
    profiled = 0
    async with aiohttp.ClientSession(timeout=TIMEOUT) as session:

        async def get(port: int, path: str, **headers: str) -> tuple[int, str]:
            try:
                async with session.get(f"http://127.0.0.1:{port}{path}", headers=headers) as reply:
                    return reply.status, await reply.text(errors="replace")
            except (aiohttp.ClientError, TimeoutError):
                return 0, ""  # a port of TLS or gRPC

        for process in statuses:
            for port in process.ports if process.name.endswith("/kwok") else ():
                profiled += 1
                for path in ("/debug/pprof/", "/debug/pprof/goroutine", "/debug/pprof/heap", "/debug/pprof/cmdline"):
                    status, text = await get(port, path)
                    assert (status == 200, "goroutine" in text) == (False, False), (process.name, path)
            for port in process.ports if process.name in OURS else ():
                status, text = await get(port, "/metrics")
                assert status != 200, process.name
                assert "kairship_" not in text, process.name
                if (await get(port, "/metrics", Authorization=f"Bearer {token}"))[0] == 200:
                    serve_metrics.add(process.name)
    assert profiled >= 2
    assert serve_metrics == OURS


async def test_a_webhook_of_a_user_does_not_reach_this_machine(plane: EmbeddedPlane) -> None:
    """An open port and a closed one look the same, and the webhook of the plane itself goes on."""
    async with entrance_of(plane) as admin:
        hooks = "/apis/ghippo.io/v1alpha1/webhooks"
        own = (await admin.request("GET", f"{hooks}/kairship")).json
        assert own["url"].startswith("https://127.0.0.1:")
        targets = {"open-port": own["url"], "closed-port": "https://127.0.0.1:9/bindings"}
        # Another path, because the URL that the operator has entered is the one exception.
        targets["open-port"] += "?x"
        try:
            for name, url in targets.items():
                made = await admin.request("POST", hooks, {"name": name, "url": url})
                assert made.status == 200, made.body

            async def problems() -> list[str]:
                return [(await admin.request("GET", f"{hooks}/{name}")).json["problem"] for name in targets]

            async def both() -> bool:
                return all(await problems())

            await eventually(both, "both problems")
            assert len(set(await problems())) == 1
        finally:
            for name in targets:
                await admin.request("DELETE", f"{hooks}/{name}")

        async def delivered() -> bool:
            return not (await admin.request("GET", f"{hooks}/kairship")).json["problem"]

        await eventually(delivered, "the plane's own webhook without a problem")
