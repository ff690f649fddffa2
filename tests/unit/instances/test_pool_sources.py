"""The sources of the pool: no cache keeps a credential, and a kubeconfig of a user can do no harm."""

import base64
from typing import Any

import msgspec
import pytest
from support.certificates import Authority

from kairship.instances.pool.sources import ClusterShape, InstanceShape, Reference, SecretShape, connection_from
from kairship.kube import ConfigError, Connection

SERVER = "https://cluster.test:6443"


def secret(kubeconfig: bytes | None, **more: str) -> SecretShape:
    encoded = {} if kubeconfig is None else {"kubeconfig": base64.b64encode(kubeconfig).decode()}
    body = {"metadata": {"name": "s", "namespace": "n"}, "data": {**encoded, **more}}
    return msgspec.json.decode(msgspec.json.encode(body), type=SecretShape)


def test_a_secret_is_known_by_its_fingerprint_only() -> None:
    known = secret(b"apiVersion: v1\ntoken: very-secret")
    stored = f"{known!r} {msgspec.json.encode(known)!r}"
    assert "very-secret" not in stored
    assert base64.b64encode(b"very-secret").decode()[:8] not in stored
    assert known == secret(b"apiVersion: v1\ntoken: very-secret", other="b3RoZXI=")
    assert known != secret(b"apiVersion: v1\ntoken: another")
    assert known != secret(None)


@pytest.mark.parametrize(
    ("shape", "content", "reference"),
    [
        (InstanceShape, {}, Reference("u", None)),
        (InstanceShape, {"status": {"credentials": {"name": "s"}}}, Reference("u", "s")),
        (ClusterShape, {"spec": {"credentials": {"name": "s"}}}, Reference("u", "s")),
        (ClusterShape, {"spec": {"credentials": {"name": "s"}, "endpoint": SERVER}}, Reference("u", "s", SERVER)),
    ],
)
def test_where_a_target_is_reached(
    shape: type[InstanceShape] | type[ClusterShape], content: dict[str, Any], reference: Reference
) -> None:
    body = msgspec.json.encode({"metadata": {"name": "x", "uid": "u"}, **content})
    assert msgspec.json.decode(body, type=shape).reference == reference


def test_another_address_keeps_trust_and_identity() -> None:
    given = Connection(server=SERVER, ca=Authority().certificate, token="t")
    moved = connection_from(given.to_kubeconfig(name="x"), endpoint="https://10.0.0.1:443/")
    assert moved == msgspec.structs.replace(given, server="https://10.0.0.1:443")


@pytest.mark.parametrize(
    ("given", "endpoint", "said"),
    [
        (Connection(server="http://cluster.test"), None, "use an https address"),
        (Connection(server=SERVER, token="t"), "http://cluster.test", "credentials are sent over https only"),
        (Connection(server=SERVER, insecure_skip_tls_verify=True), None, "give its CA instead"),
        (Connection(server=SERVER, token_file="/var/run/token"), None, "refers to a file"),
    ],
)
def test_what_is_refused(given: Connection, endpoint: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        connection_from(given.to_kubeconfig(name="x"), endpoint=endpoint)


REPEATED = b"a: &a [x, x]\nb: &b [*a, *a]\nclusters: *b"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"[" * 900_000, "nested deeper"),
        (b"users: " + b"[" * 5_000 + b"]" * 5_000, "nested deeper"),
        (REPEATED, "aliases"),
        (b"clusters: 2020-13-45", "clusters"),
        (b"token: [", "is not YAML"),
        (
            Connection(server=SERVER, token="one-two").to_kubeconfig(name="x").replace(b"one-two", b'"one\\ntwo"'),
            "perhaps a line break",
        ),
        (b"\x00", "is not YAML"),
    ],
)
def test_what_is_made_to_break_the_reader_is_refused(given: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        connection_from(given)
