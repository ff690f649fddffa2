"""The shapes of objects in the global cluster."""

import msgspec

from kairship.controllers.global_cluster import SecretFingerprint


def decode(data: dict[str, str] | None) -> SecretFingerprint:
    secret = {"metadata": {"name": "s"}, "data": data}
    return msgspec.json.decode(msgspec.json.encode(secret), type=SecretFingerprint)


def test_a_secret_is_told_from_another_without_keeping_its_content() -> None:
    one, same, other = decode({"k": "c2VjcmV0"}), decode({"k": "c2VjcmV0"}), decode({"k": "b3RoZXI="})
    assert one == same != other
    assert "c2VjcmV0" not in repr(one)
    assert decode(None).data is None
