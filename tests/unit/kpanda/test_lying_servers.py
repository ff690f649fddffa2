"""Verification of servers that are not clusters, or that lie: bounded in time and memory, quoting nothing they say."""

import datetime as dt
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
from protobuf import Oneof
from support.certificates import Authority
from support.scripted_server import Reply, chunked, reply, scripted_server

from kairship.gen.kairship.kpanda.v1alpha1.credential_pb import CheckResult, CheckType, Credential, Token
from kairship.kpanda.verification import Timeouts, Verified, Verifier
from kairship.kube import AddressRule

SECRET = "internal-secret-of-somebody-else"
VERSION = reply({"gitVersion": "v1.35.0"})
KUBE_SYSTEM = {"metadata": {"name": "kube-system", "uid": "0b1c2d3e-0000-4000-8000-000000000000"}}
ALLOWED = reply({"status": {"allowed": True}})


@asynccontextmanager
async def verified(*script: Reply, whole: float = 60.0) -> AsyncIterator[Verified]:
    authority = Authority()
    async with scripted_server(*script, tls=authority.issue().server_context()) as server:
        form: Oneof[Literal["token"], Token] = Oneof(
            "token", Token(server=server.url, certificate_authority=authority.certificate.decode(), token="abc")
        )
        verifier = Verifier(
            addresses=AddressRule.allowing(["127.0.0.1"]),
            known_as=lambda _: None,
            now=lambda: dt.datetime.now(dt.UTC),
            timeouts=Timeouts(whole=whole, call=30.0),
        )
        yield await verifier.verify(Credential(form=form))


def failed(found: Verified) -> tuple[CheckType, str]:
    (check,) = [check for check in found.result.checks if check.result is CheckResult.FAILED]
    assert not found.result.accepted
    assert found.kubeconfig is None
    assert SECRET not in str(found.result)
    return check.type, check.message


@pytest.mark.parametrize(
    ("script", "check"),
    [
        ([reply(f"<html>{SECRET}</html>".encode())], CheckType.REACHABLE),
        ([reply({"message": SECRET, "kind": "Status"}, status=500)], CheckType.REACHABLE),
        ([reply(status=302, headers={"Location": f"http://169.254.169.254/{SECRET}"})], CheckType.REACHABLE),
        ([Reply(SECRET.encode(), then="close")], CheckType.REACHABLE),
        ([reply({"gitVersion": 7})], CheckType.REACHABLE),
        ([reply({"message": SECRET}, status=401)], CheckType.ACCEPTED),
        ([VERSION, reply({"message": SECRET}, status=401)], CheckType.ACCEPTED),
        ([reply({"gitVersion": f"v1.35.0 {SECRET}"}), reply(KUBE_SYSTEM)], CheckType.VERSION),
        ([reply({"gitVersion": "v" * 100_000}), reply(KUBE_SYSTEM)], CheckType.VERSION),
        ([reply({"gitVersion": "v1.21.14"}), reply(KUBE_SYSTEM)], CheckType.VERSION),
        ([reply({"gitVersion": ""}), reply(KUBE_SYSTEM)], CheckType.VERSION),
        ([VERSION, reply({"metadata": {"name": "kube-system", "uid": "../../etc"}})], CheckType.REACHABLE),
        ([VERSION, reply(KUBE_SYSTEM), reply({"status": "yes"})], CheckType.RIGHTS),
    ],
)
async def test_what_is_no_cluster_is_refused_by_the_check_that_finds_out(script: list[Reply], check: CheckType) -> None:
    async with verified(*script) as found:
        kind, message = failed(found)
    assert kind is check
    assert message


async def test_a_reply_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kairship.kpanda.observation.client._LARGEST_REPLY", 1 << 20)
    async with verified(chunked(*([b"x" * 65536] * 64), end=False, then="hang")) as found:
        kind, _ = failed(found)
    assert kind is CheckType.REACHABLE


async def test_pages_that_do_not_end_take_no_longer_than_allowed() -> None:
    """All necessary checks were made by then, so the cluster is accepted, without the number of its nodes."""
    page = reply({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": []})
    began = time.monotonic()
    # The rights that are reviewed: two on namespaces, two on nodes, two on pods, and two on everything.
    async with verified(VERSION, reply(KUBE_SYSTEM), *[ALLOWED] * 8, *[page] * 20_000, whole=5.0) as found:
        assert time.monotonic() - began < 30
        assert found.result.accepted, [str(check.message) for check in found.result.checks]
        assert found.result.nodes is None
