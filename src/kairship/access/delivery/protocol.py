"""The webhook protocol by which global management delivers bindings, and the verification of its signatures.

A receiver needs nothing else in order to follow the rights of the platform:

    receiver = Receiver(secret)
    delivery = receiver.read(request.headers, body, at=time.time())
    for binding in delivery.bindings: …apply it, unless the stored one has the same sequence or a higher one…
    answer 204, or 200 with encode(Acknowledgement(refused)) if some of them can never be stored

A delivery may arrive twice, late or out of order: the sequence of each binding decides which state is newer.
`BindingChanges` has the bindings that changed. `SnapshotPage` repeats all bindings whose names lie in a range, so that
a receiver with surplus or missing bindings in that range is consistent again. Ranges follow each other, and any replica
of a receiver can take any of them.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping

import msgspec

from kairship.resources import AccessBindingSpec

SIGNATURE = "X-Kairship-Signature"
TIMESTAMP = "X-Kairship-Timestamp"
TOLERANCE = 300
"""Seconds after which a delivery is refused. Tombstones of revoked bindings are kept for longer than that."""
MAX_BYTES = 4 * 1024 * 1024

_SIGNED = re.compile(r"v1=[0-9a-f]{64}")
_DIGITS = 12


class DeliveryRefusedError(Exception):
    """The delivery is not from global management, or is too old. The message gives a forger no help."""


class DeliveredBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A binding to be stored: the name of an `AccessBinding` and its spec."""

    name: str
    spec: AccessBindingSpec


class BindingChanges(msgspec.Struct, frozen=True, kw_only=True, tag="changes"):
    """The bindings that changed, in the order of their sequences."""

    bindings: tuple[DeliveredBinding, ...]


class SnapshotPage(msgspec.Struct, frozen=True, kw_only=True, tag="everything"):
    """All bindings with `after < name <= upto`.

    A stored binding in that range that is not among them, and whose sequence is at most `sequence`, no longer exists.
    """

    bindings: tuple[DeliveredBinding, ...]
    after: str
    upto: str | None
    """None if the range is open at its end."""
    sequence: int

    def is_gone(self, name: str, sequence: int) -> bool:
        """Whether a binding that a receiver has stored no longer exists."""
        within = name > self.after and (self.upto is None or name <= self.upto)
        known = any(binding.name == name for binding in self.bindings)
        return within and not known and sequence <= self.sequence


Delivery = BindingChanges | SnapshotPage


class RejectedBinding(msgspec.Struct, frozen=True, kw_only=True):
    """A binding that a receiver can never store as it is."""

    name: str
    sequence: int
    reason: str


class Acknowledgement(msgspec.Struct, frozen=True):
    """The answer of a receiver that has stored everything but the refused bindings; without any it answers 204.

    The refused bindings are set aside: deliveries continue, and these come again when they change or with a snapshot.
    """

    refused: tuple[RejectedBinding, ...] = ()


_decoder: msgspec.json.Decoder[Delivery] = msgspec.json.Decoder(Delivery)


def encode(message: Delivery | Acknowledgement) -> bytes:
    return msgspec.json.encode(message)


def read_acknowledgement(body: bytes) -> Acknowledgement:
    """The acknowledgement in the body of a 2xx answer. A body that is none counts as an empty one."""
    try:
        return msgspec.json.decode(body, type=Acknowledgement)
    except msgspec.DecodeError:
        return Acknowledgement()


def signed_headers(secret: str, body: bytes, *, at: int) -> dict[str, str]:
    return {TIMESTAMP: str(at), SIGNATURE: f"v1={_signature(secret, str(at), body)}"}


class Receiver:
    """Verifies deliveries with the secret that the webhook was created with. While it is rotated there are two."""

    def __init__(self, *secrets: str) -> None:
        self._secrets = secrets

    def __repr__(self) -> str:
        return "Receiver(…)"

    def check_headers(self, headers: Mapping[str, str], *, at: float) -> None:
        """Refuses a delivery that cannot be genuine by its headers, so that its body need not be read."""
        if not self._secrets or not _SIGNED.fullmatch(headers.get(SIGNATURE, "")):
            raise DeliveryRefusedError("the signature is not right")
        _check_time(headers.get(TIMESTAMP, ""), at)

    def read(self, headers: Mapping[str, str], body: bytes, *, at: float) -> Delivery:
        """The body is not parsed before its signature has been verified. Raises `DeliveryRefusedError`."""
        if len(body) > MAX_BYTES:
            raise DeliveryRefusedError("the delivery is too large")
        timestamp = headers.get(TIMESTAMP, "")
        given = headers.get(SIGNATURE, "").removeprefix("v1=").encode()
        genuine = [hmac.compare_digest(given, _signature(each, timestamp, body).encode()) for each in self._secrets]
        if not any(genuine):
            raise DeliveryRefusedError("the signature is not right")
        _check_time(timestamp, at)
        try:
            return _decoder.decode(body)
        except msgspec.DecodeError as error:
            raise DeliveryRefusedError(f"the delivery is not understood: {error}") from error


def _check_time(timestamp: str, at: float) -> None:
    plausible = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS
    if not plausible or abs(at - int(timestamp)) > TOLERANCE:
        raise DeliveryRefusedError("the delivery is not of this time; are the clocks right?")


def _signature(secret: str, timestamp: str, body: bytes) -> str:
    signed = timestamp.encode("utf-8", "replace") + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
