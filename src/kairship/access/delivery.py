"""Deliveries of bindings: what global management sends to its webhooks, and how a receiver knows that it is genuine.

This is all that another module needs in order to follow who may do what:

    receiver = Receiver(secret)
    delivery = receiver.read(request.headers, body, at=time.time())
    for binding in delivery.bindings: …apply it, unless what is stored has the same sequence or a higher one…
    answer 204, or 200 with encode(Acknowledgement(refused)) if some of them can never be stored

A delivery may come twice, late or out of order: the sequence of each binding settles it. `Changes` has what changed;
`Everything` repeats all bindings whose names lie in a range, so that a receiver that has others in that range, or lost
some, is whole again. Ranges follow each other, and any replica of a receiver can take any of them.
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
"""How old a delivery may be, in seconds. Gravestones of withdrawn bindings are kept for longer than that."""
LARGEST = 4 * 1024 * 1024

_SIGNED = re.compile(r"v1=[0-9a-f]{64}")
_DIGITS = 12


class DeliveryRefusedError(Exception):
    """It is not from global management, or not for now. The message says nothing that helps to forge one."""


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """A binding as it shall be stored: the name of an `AccessBinding` and its spec."""

    name: str
    spec: AccessBindingSpec


class Changes(msgspec.Struct, frozen=True, kw_only=True, tag="changes"):
    """What changed, in the order of sequences."""

    bindings: tuple[Delivered, ...]


class Everything(msgspec.Struct, frozen=True, kw_only=True, tag="everything"):
    """All bindings with `after < name <= upto`. One that is stored there, is not among them and has a sequence of at
    most `sequence` does not exist any more."""

    bindings: tuple[Delivered, ...]
    after: str
    upto: str | None
    """None is the end of all names."""
    sequence: int

    def is_gone(self, name: str, sequence: int) -> bool:
        """Whether a binding that a receiver has stored is one of those that do not exist any more."""
        within = name > self.after and (self.upto is None or name <= self.upto)
        known = any(binding.name == name for binding in self.bindings)
        return within and not known and sequence <= self.sequence


Delivery = Changes | Everything


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A binding that a receiver can never store as it is."""

    name: str
    sequence: int
    reason: str


class Acknowledgement(msgspec.Struct, frozen=True):
    """What a receiver may answer when it has stored everything but these; with nothing to refuse, 204 says it all.

    They are set aside: later deliveries go on, and these come again when they change, or with everything.
    """

    refused: tuple[Refused, ...] = ()


_decoder: msgspec.json.Decoder[Delivery] = msgspec.json.Decoder(Delivery)


def encode(message: Delivery | Acknowledgement) -> bytes:
    return msgspec.json.encode(message)


def read_acknowledgement(body: bytes) -> Acknowledgement:
    """Of a receiver that has agreed. Whatever else it says has no meaning."""
    try:
        return msgspec.json.decode(body, type=Acknowledgement)
    except msgspec.DecodeError:
        return Acknowledgement()


def signed_headers(secret: str, body: bytes, *, at: int) -> dict[str, str]:
    return {TIMESTAMP: str(at), SIGNATURE: f"v1={_signature(secret, str(at), body)}"}


class Receiver:
    """Verifies deliveries with the secret that the webhook was created with. While it is changed there are two."""

    def __init__(self, *secrets: str) -> None:
        self._secrets = secrets

    def __repr__(self) -> str:
        return "Receiver(…)"

    def look_at(self, headers: Mapping[str, str], *, at: float) -> None:
        """Refuse by its headers what cannot be genuine, so that its body need not be read."""
        if not self._secrets or not _SIGNED.fullmatch(headers.get(SIGNATURE, "")):
            raise DeliveryRefusedError("the signature is not right")
        _check_time(headers.get(TIMESTAMP, ""), at)

    def read(self, headers: Mapping[str, str], body: bytes, *, at: float) -> Delivery:
        """Nothing of the body is looked at before the signature is found to be right."""
        if len(body) > LARGEST:
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
