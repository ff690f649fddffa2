"""When credentials expire, and which credentials are accepted and refused."""

import base64
import datetime as dt
from typing import Any

import msgspec
import pytest
from support.certificates import Authority

from kairship.instances.credentials.expiry import expires_at
from kairship.kpanda.credentials.secrets import secret_name
from kairship.kube import Connection


def token(claims: bytes) -> str:
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"


def connection(**fields: Any) -> Connection:
    return Connection(server="https://192.0.2.1", **fields)


def test_a_token_says_when_it_ends() -> None:
    end = dt.datetime(2027, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    claims = msgspec.json.encode({"exp": int(end.timestamp()), "sub": "x"})
    assert expires_at(connection(token=token(claims))) == end


@pytest.mark.parametrize(
    "text",
    [
        "opaque",
        "a.b",
        "a.b.c",
        "a.!!!.c",
        token(b"not json"),
        token(b"[]"),
        token(b"{}"),
        token(b'{"exp": "soon"}'),
        token(b'{"exp": 1e300}'),
        token(b'{"exp": -1e18}'),
        "e30." + "A" * 200_000 + ".c",
    ],
)
def test_what_says_nothing_of_its_end_does_no_harm(text: str) -> None:
    assert expires_at(connection(token=text)) is None


def test_the_earlier_end_counts() -> None:
    issued = Authority().issue()
    by_certificate = expires_at(connection(client_cert=issued.certificate, client_key=issued.key))
    assert by_certificate is not None
    early = int((by_certificate - dt.timedelta(minutes=5)).timestamp())
    both = connection(
        client_cert=issued.certificate, client_key=issued.key, token=token(msgspec.json.encode({"exp": early}))
    )
    assert expires_at(both) == dt.datetime.fromtimestamp(early, dt.UTC)


def test_a_secret_can_be_named_after_any_identity() -> None:
    names = {secret_name(identity) for identity in ("a", "A", "../x", "é" * 500, "")}
    assert len(names) == 5
    assert all(name.isascii() and name == name.lower() and "/" not in name and len(name) < 63 for name in names)
