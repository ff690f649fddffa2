"""What the reply to a write says of it: the revision that it led to, or the object that is gone."""

from typing import Any

import msgspec
import pytest

from kairship.apiserver.proxy.noting import told

GOING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("verb", "reply", "expected"),
    [
        ("create", {"kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": "7"}}, (7, "")),
        ("update", {"kind": "Scale", "metadata": {"uid": "u", "resourceVersion": "8"}}, (8, "")),
        # The last finalizer was taken away: what is shown has the revision from before.
        ("patch", {"metadata": {"uid": "u", "resourceVersion": "7", "deletionTimestamp": GOING}}, (0, "u")),
        (
            "patch",
            {"metadata": {"uid": "u", "resourceVersion": "9", "deletionTimestamp": GOING, "finalizers": ["x"]}},
            (9, ""),
        ),
        (
            "delete",
            {
                "kind": "Pod",
                "metadata": {
                    "uid": "u",
                    "resourceVersion": "9",
                    "deletionTimestamp": GOING,
                    "deletionGracePeriodSeconds": 30,
                },
            },
            (9, ""),
        ),
        ("delete", {"kind": "Status", "metadata": {}, "details": {"uid": "u"}}, (0, "u")),
        ("create", {"kind": "Status", "metadata": {}, "details": {"uid": "u"}}, (0, "")),
        ("create", {"metadata": {"resourceVersion": "-1"}}, (0, "")),
        ("create", {}, (0, "")),
        ("create", [], (0, "")),
    ],
)
def test_a_reply_says_what_to_wait_for(verb: str, reply: Any, expected: tuple[int, str]) -> None:
    assert told(verb, msgspec.json.encode(reply)) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"k8s\x00\n\x08"])
def test_what_is_no_json_says_nothing(body: bytes) -> None:
    assert told("create", body) == (0, "")
