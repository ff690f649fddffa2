"""Measures sign-ins and the propagation of bindings on a running plane with all its processes.

    python benchmarks/identities.py

Targets: a binding, and its end, is in effect at the entrance within 5 s at the 99th percentile. Sign-ins are slow on
purpose: argon2 takes most of each, in two threads.
"""

import asyncio
import ssl
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import report

from kairship.embedded import EmbeddedPlane, Home, stop_plane
from kairship.embedded.entrance import Entrance
from kairship.engine import Engine

ROUNDS = 40
SIGN_INS, AT_ONCE = 60, 4
PASSWORD = "correct horse battery staple"  # noqa: S105 - of a plane that lives for a minute
TARGET = 5.0
MANAGEMENT, INSTANCE = "/apis/ghippo.io/v1alpha1", "/apis/kairship.io/v1alpha1/instances/demo"


class Quiet:
    def doing(self, subject: str, activity: str) -> None:
        """Ignores the progress."""

    def done(self, subject: str, outcome: str) -> None:
        """Ignores the progress."""


class Person:
    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session = session
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def asks(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.request(verb, path, json=body, headers=self._headers) as reply:
            return reply.status, await reply.json()

    async def gets(self, verb: str, path: str, body: Any = None) -> Any:
        status, found = await self.asks(verb, MANAGEMENT + path, body)
        assert status == 200, found
        return found

    async def until(self, status: int) -> float:
        """The seconds until the instance answers with this status."""
        begin = time.perf_counter()
        while (await self.asks("GET", INSTANCE))[0] != status:  # noqa: ASYNC110 - it is what is measured
            await asyncio.sleep(0.002)
        return time.perf_counter() - begin


async def signed_in(admin: Person, session: aiohttp.ClientSession, name: str) -> tuple[str, Person]:
    """A user without any role."""
    anybody = Person(session, "")
    user = (await admin.gets("POST", "/users", {"name": name, "password": f"old {PASSWORD}"}))["id"]
    first = await anybody.gets("POST", "/login", {"name": name, "password": f"old {PASSWORD}"})
    change = {"oldPassword": f"old {PASSWORD}", "newPassword": PASSWORD}
    await Person(session, first["token"]).gets("PUT", "/current-user/password", change)
    renewed = await anybody.gets("POST", "/refresh-token", {"refreshToken": first["refreshToken"]})
    return user, Person(session, renewed["token"])


async def propagation(admin: Person, user: str, person: Person) -> tuple[list[float], list[float]]:
    binding = {"subject": {"kind": "USER", "id": user}, "role": "viewer", "target": {"kind": "PLATFORM"}}
    given, taken = [], []
    for _ in range(ROUNDS):
        made = await admin.gets("POST", "/bindings", binding)
        given.append(await person.until(200))
        await admin.gets("DELETE", f"/bindings/{made['id']}")
        taken.append(await person.until(404))
    return given, taken


async def sign_ins(session: aiohttp.ClientSession, name: str) -> float:
    anybody = Person(session, "")
    begin = time.perf_counter()
    for _ in range(SIGN_INS // AT_ONCE):
        logins = (anybody.gets("POST", "/login", {"name": name, "password": PASSWORD}) for _ in range(AT_ONCE))
        await asyncio.gather(*logins)
    return SIGN_INS / (time.perf_counter() - begin)


async def measure(entrance: Entrance) -> dict[str, float]:
    context = ssl.create_default_context(cafile=entrance.ca)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(entrance.server, connector=connector) as session:
        admin = Person(session, Path(entrance.token_file).read_text())
        user, person = await signed_in(admin, session, "somebody")
        given, taken = await propagation(admin, user, person)
        rate = await sign_ins(session, "somebody")
    return {
        "bind_p50_ms": _part(given, 0.5),
        "bind_p99_ms": _part(given, 0.99),
        "unbind_p50_ms": _part(taken, 0.5),
        "unbind_p99_ms": _part(taken, 0.99),
        "sign_ins_per_second": round(rate, 1),
    }


def _part(seconds: list[float], part: float) -> float:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return round(cuts[round(part * 100) - 1] * 1000, 1)


async def main() -> None:
    engine = await Engine.find()
    with tempfile.TemporaryDirectory(prefix="kairship-bench-", ignore_cleanup_errors=True) as directory:
        home = Home(Path(directory) / "plane")
        try:
            outcome = await EmbeddedPlane(home, engine).up(Quiet(), ())
            figures = await measure(outcome.entrance)
        finally:
            await stop_plane(home)
    report.table("on a running plane", ["", "figure"], [[name, f"{value:g}"] for name, value in figures.items()])
    slowest = max(figures["bind_p99_ms"], figures["unbind_p99_ms"]) / 1000
    report.write("identities", figures=figures, ratios={"slowest_propagation_to_target": round(slowest / TARGET, 3)})


if __name__ == "__main__":
    asyncio.run(main())
