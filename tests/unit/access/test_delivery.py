"""Genuine deliveries are read; all others are refused before their bodies are parsed."""

import pytest
from support.bindings import on

from kairship.access.delivery.protocol import (
    MAX_BYTES,
    SIGNATURE,
    TIMESTAMP,
    TOLERANCE,
    BindingChanges,
    DeliveredBinding,
    DeliveryRefusedError,
    Receiver,
    SnapshotPage,
    encode,
    signed_headers,
)
from kairship.resources import AccessBindingSpec, SubjectKind
from kairship.resources.access_binding import Origin, OriginKind, Role, Subject

AT = 1_800_000_000
SECRET = "ksw_secret"


def binding(name: str) -> DeliveredBinding:
    spec = AccessBindingSpec(
        subject=Subject(kind=SubjectKind.USER, id="u-1"),
        role=Role(id="viewer"),
        permissions=("kairship.deployments.get",),
        scope=on("east", "web"),
        origin=Origin(kind=OriginKind.RESOURCE),
        sequence=7,
    )
    return DeliveredBinding(name=name, spec=spec)


DELIVERY = BindingChanges(bindings=(binding("b-1"),))


def test_what_is_sent_is_what_arrives() -> None:
    body = encode(DELIVERY)
    assert Receiver(SECRET).read(signed_headers(SECRET, body, at=AT), body, at=AT + 10) == DELIVERY
    assert Receiver("another", SECRET).read(signed_headers(SECRET, body, at=AT), body, at=AT) == DELIVERY


@pytest.mark.parametrize(
    "change",
    [
        {SIGNATURE: ""},
        {SIGNATURE: "v1="},
        {SIGNATURE: "v1=" + "0" * 64},
        {SIGNATURE: "é"},
        {TIMESTAMP: str(AT + 1)},
        {TIMESTAMP: ""},
        {TIMESTAMP: "\ud800"},
    ],
)
def test_a_forged_delivery_is_refused(change: dict[str, str]) -> None:
    body = encode(DELIVERY)
    with pytest.raises(DeliveryRefusedError, match="signature"):
        Receiver(SECRET).read(signed_headers(SECRET, body, at=AT) | change, body, at=AT)


def test_a_changed_body_and_another_secret_are_refused() -> None:
    body = encode(DELIVERY)
    headers = signed_headers(SECRET, body, at=AT)
    with pytest.raises(DeliveryRefusedError, match="signature"):
        Receiver(SECRET).read(headers, body.replace(b"viewer", b"admin!"), at=AT)
    with pytest.raises(DeliveryRefusedError, match="signature"):
        Receiver("another").read(headers, body, at=AT)
    with pytest.raises(DeliveryRefusedError, match="signature"):
        Receiver().read(headers, body, at=AT)


@pytest.mark.parametrize("late", [TOLERANCE + 1, -TOLERANCE - 1])
def test_a_delivery_of_another_time_is_refused(late: int) -> None:
    body = encode(DELIVERY)
    with pytest.raises(DeliveryRefusedError, match="clocks"):
        Receiver(SECRET).read(signed_headers(SECRET, body, at=AT), body, at=AT + late)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"type":"other"}', b"\xff", b'{"type":"changes","bindings":[{}]}']
)
def test_what_is_signed_and_not_understood_is_refused(body: bytes) -> None:
    with pytest.raises(DeliveryRefusedError, match="not understood"):
        Receiver(SECRET).read(signed_headers(SECRET, body, at=AT), body, at=AT)


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(DeliveryRefusedError, match="too large"):
        Receiver(SECRET).read({}, b"x" * (MAX_BYTES + 1), at=AT)


def test_a_snapshot_page_says_what_is_gone() -> None:
    page = SnapshotPage(bindings=(binding("b-5"),), after="b-3", upto="b-7", sequence=100)
    assert page.is_gone("b-6", 99)
    assert not page.is_gone("b-5", 7)  # it is there
    assert not page.is_gone("b-6", 101)  # it is newer than the page
    assert not page.is_gone("b-3", 1)  # not of this page
    assert not page.is_gone("b-8", 1)
    assert SnapshotPage(bindings=(), after="b-7", upto=None, sequence=9).is_gone("b-8", 1)


def test_no_secret_is_shown() -> None:
    assert SECRET not in repr(Receiver(SECRET))
