"""Measures a terminal in a pod of a member, and the pod's logs, through the entrance and without it.

The pods are kwok's: a command runs on this machine, and the log is a file. Both paths end at the same pod, through
Karmada's cluster proxy; they differ only in the entrance.
"""

import ssl
import statistics
import time

import aiohttp
from lean_client import LeanClient

_STDIN, _STDOUT = 0, 1
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_LINE = "x" * 200
_PATIENCE = 60.0


async def echo(url: str, tls: ssl.SSLContext, headers: dict[str, str], *, times: int) -> dict[str, float]:
    """The time from a typed line to its echo. `url` is that of the pod."""
    address = f"{url}/exec?command=cat&stdin=true&stdout=true"
    seconds = []
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, ssl=tls, headers=headers, protocols=_PROTOCOLS) as terminal,
    ):
        for number in range(times):
            line = f"line {number}\n".encode()
            began = time.perf_counter()
            await terminal.send_bytes(bytes([_STDIN]) + line)
            shown = b""
            while shown != line:
                frame = await terminal.receive_bytes(timeout=_PATIENCE)
                if frame[0] == _STDOUT:
                    shown += frame[1:]
            seconds.append(time.perf_counter() - began)
    return {"p50_ms": statistics.median(seconds) * 1e3, "p99_ms": sorted(seconds)[int(times * 0.99) - 1] * 1e3}


def log_lines(megabytes: int, last: str) -> list[str]:
    return [*([_LINE] * (megabytes * 1_000_000 // len(_LINE))), last]


def logs(client: LeanClient, path: str, last: str, megabytes: int) -> float:
    """The megabytes per second of a log that is followed."""
    answer = client.get(f"{path}/log?follow=true", until=last.encode())
    assert answer.status == 200, answer.status
    return megabytes / answer.seconds
