"""Which credentials can renew themselves, and when a renewal is due."""

import base64
import datetime as dt
from typing import Any

import msgspec
import pytest

from kairship.instances.credentials.self_renewing import own_token
from kairship.instances.membership import RENEWED, edition_of, renewed_label
from kairship.kube import Connection

START = dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
BOUND = {"namespace": "apps", "serviceaccount": {"name": "robot", "uid": "u"}}
CLAIMS = {"aud": ["api"], "iat": START.timestamp(), "exp": START.timestamp() + 3600, "kubernetes.io": BOUND}


def connection(claims: dict[str, Any] | None = None, **fields: Any) -> Connection:
    encoded = base64.urlsafe_b64encode(msgspec.json.encode(claims)).decode().rstrip("=")
    token = None if claims is None else f"e30.{encoded}.c2ln"
    return Connection(server="https://192.0.2.1", token=token, **fields)


def test_a_token_of_an_account_is_renewed_at_half_of_its_life() -> None:
    token = own_token(connection(CLAIMS))
    assert token is not None
    assert (token.namespace, token.account, token.audiences) == ("apps", "robot", ("api",))
    assert token.due == START + dt.timedelta(minutes=30)
    one = own_token(connection({**CLAIMS, "aud": "api"}))
    assert one is not None
    assert one.audiences == ("api",)


@pytest.mark.parametrize(
    "credential",
    [
        connection(),
        connection(CLAIMS, client_cert=b"c", client_key=b"k"),
        connection({**CLAIMS, "exp": None}),
        connection({**CLAIMS, "exp": 1e300}),
        connection({**CLAIMS, "exp": START.timestamp()}),
        connection({"exp": 1.0, "iat": 0.0}),
        connection({**CLAIMS, "kubernetes.io": {**BOUND, "pod": {"name": "p", "uid": "u"}}}),
        Connection(server="https://192.0.2.1", token="opaque"),
    ],
)
def test_of_all_else_somebody_must_think(credential: Connection) -> None:
    assert own_token(credential) is None


def test_a_renewed_credential_is_the_one_before_and_a_replaced_one_is_not() -> None:
    first, second, third = (Connection(server="https://192.0.2.1", token=text) for text in ("one", "two", "three"))
    edition = edition_of(first, None)
    labels = {RENEWED: renewed_label(first, None, second)}
    assert edition_of(second, labels) == edition
    again = {RENEWED: renewed_label(second, labels, third)}
    assert edition_of(third, again) == edition
    # A user has replaced the credential: the label that is left is not about the new one.
    assert edition_of(third, labels) == edition_of(third, None) != edition
    assert edition_of(msgspec.structs.replace(second, server="https://192.0.2.2"), labels) != edition
    assert "two" not in labels[RENEWED]
