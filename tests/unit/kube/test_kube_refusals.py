"""The error for each refusal of a server."""

import json

import pytest

from kairship.kube import ApiError, Forbidden, Invalid, Unavailable
from kairship.kube.status_errors import api_error

POLICY = "clusters \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: "


def refused(code: int, reason: str, message: str) -> ApiError:
    body = json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()
    return api_error(status=code, body=body, headers={}, call="DELETE clusters", server="here")


UNREADY = POLICY + "failed to configure policy: failed to find resource referenced by paramKind: 'kairship.io/v1alpha1'"
UNREAD = POLICY + "failed to configure binding: paramKind kind `Instance` not yet synced to use for admission"
ANONYMOUS = 'clusters is forbidden: User "system:anonymous" cannot list resource "clusters" at the cluster scope'


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (422, "Invalid", UNREADY),
        (403, "Forbidden", UNREADY),
        (403, "Forbidden", UNREAD),
        (403, "Forbidden", ANONYMOUS),
    ],
)
def test_a_server_that_cannot_judge_yet_is_asked_again(code: int, reason: str, message: str) -> None:
    """After a restart a server may not know a policy's paramKind yet, or which front proxy to trust."""
    error = refused(code, reason, message)
    assert isinstance(error, Unavailable)
    assert error.retryable


def test_what_a_policy_denies_stays_denied() -> None:
    assert isinstance(refused(403, "Forbidden", POLICY + "it has joined clusters"), Forbidden)
    assert isinstance(refused(422, "Invalid", POLICY + "it has joined clusters"), Invalid)
