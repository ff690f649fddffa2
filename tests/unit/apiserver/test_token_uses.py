"""When tokens were last used: told in batches, later if it cannot be told now, and bounded."""

from typing import cast

import pytest

from kairship.apiserver import token_uses
from kairship.apiserver.token_uses import TokenUses
from kairship.gen.kairship.internal.v1.directory_pb import NoteTokenUsesRequest
from kairship.rpc.errors import Unavailable
from kairship.rpc.role_channel import RoleChannel


class Management:
    def __init__(self) -> None:
        self.told: list[dict[str, int]] = []
        self.down = False

    async def own(self, method: object, request: NoteTokenUsesRequest, *, timeout: float) -> None:
        if self.down:
            raise Unavailable("not now")
        self.told.append({use.id: use.at for use in request.uses})


async def test_each_token_is_told_once_with_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_uses, "_BATCH", 2)
    management, at = Management(), [100.0]
    uses = TokenUses(cast("RoleChannel", management), wall=lambda: at[0])
    for token in ("a", "b", "c", "a"):
        uses.note(token)
        at[0] += 1
    await uses.tell()
    assert management.told == [{"a": 103, "b": 101}, {"c": 102}]
    await uses.tell()
    assert len(management.told) == 2


async def test_what_cannot_be_told_is_told_later_and_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_uses, "MOST_WAITING", 2)
    management = Management()
    uses = TokenUses(cast("RoleChannel", management), wall=lambda: 100.0)
    management.down = True
    for token in ("a", "b", "c"):
        uses.note(token)
    with pytest.raises(Unavailable):
        await uses.tell()
    management.down = False
    await uses.tell()
    assert management.told == [{"a": 100, "b": 100}]
