"""The last uses of access tokens are reported in batches, later if they cannot be reported now, and bounded."""

from typing import cast

import pytest

from kairship.apiserver.auth import token_uses
from kairship.apiserver.auth.token_uses import TokenUses
from kairship.gen.kairship.internal.v1.directory_pb import NoteTokenUsesRequest
from kairship.rpc.backend_channel import BackendChannel
from kairship.rpc.errors import Unavailable


class Management:
    def __init__(self) -> None:
        self.reported: list[dict[str, int]] = []
        self.down = False

    async def internal_unary(self, method: object, request: NoteTokenUsesRequest, *, timeout: float) -> None:
        if self.down:
            raise Unavailable("not now")
        self.reported.append({use.id: use.at for use in request.uses})


async def test_each_token_is_reported_once_with_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_uses, "_BATCH", 2)
    management, at = Management(), [100.0]
    uses = TokenUses(cast("BackendChannel", management), wall=lambda: at[0])
    for token in ("a", "b", "c", "a"):
        uses.note(token)
        at[0] += 1
    await uses.report()
    assert management.reported == [{"a": 103, "b": 101}, {"c": 102}]
    await uses.report()
    assert len(management.reported) == 2


async def test_what_cannot_be_reported_is_reported_later_and_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_uses, "MOST_PENDING", 2)
    management = Management()
    uses = TokenUses(cast("BackendChannel", management), wall=lambda: 100.0)
    management.down = True
    for token in ("a", "b", "c"):
        uses.note(token)
    with pytest.raises(Unavailable):
        await uses.report()
    management.down = False
    await uses.report()
    assert management.reported == [{"a": 100, "b": 100}]
