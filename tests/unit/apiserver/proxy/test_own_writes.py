"""The reply to a write says which revision the write led to, or which object is gone."""

from typing import Any

import msgspec
import pytest

from kairship.apiserver.proxy.index.own_writes import write_outcome

GOING = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("verb", "reply", "expected"),
    [
        ("create", {"kind": "ConfigMap", "metadata": {"uid": "u", "resourceVersion": "7"}}, (7, "")),
        ("update", {"kind": "Scale", "metadata": {"uid": "u", "resourceVersion": "8"}}, (8, "")),
        # The last finalizer was removed: the reply shows the object with its previous revision.
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
def test_a_reply_says_what_reads_must_wait_for(verb: str, reply: Any, expected: tuple[int, str]) -> None:
    assert write_outcome(verb, msgspec.json.encode(reply)) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"k8s\x00\n\x08"])
def test_a_reply_that_is_no_json_says_nothing(body: bytes) -> None:
    assert write_outcome("create", body) == (0, "")
