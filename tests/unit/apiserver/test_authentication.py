"""The token of the administrator, in a file that may change."""

from pathlib import Path

import pytest

from kairship.apiserver.authentication import ADMIN, AdminToken
from kairship.rpc.calls import Envelope
from kairship.rpc.errors import Unauthenticated

TOKEN, OTHER = "t" * 32, "o" * 32


def with_header(value: str | None) -> Envelope:
    return Envelope.around({} if value is None else {"authorization": value}, "127.0.0.1")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Bearer  {TOKEN} "])
async def test_whoever_has_the_token_is_the_administrator(file: Path, header: str) -> None:
    assert await AdminToken(file).authenticate(with_header(header)) == ADMIN


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {OTHER}",
        f"Bearer {TOKEN}x",
        "Bearer é",
        f"Bearer {'x' * 10_000}",
    ],
)
async def test_nobody_else_is(file: Path, header: str | None) -> None:
    with pytest.raises(Unauthenticated) as refused:
        await AdminToken(file).authenticate(with_header(header))
    assert TOKEN not in str(refused.value)


async def test_a_new_token_is_taken_and_the_old_one_no_more(file: Path, clock: Clock) -> None:
    admin = AdminToken(file, clock=clock)
    await admin.authenticate(with_header(f"Bearer {TOKEN}"))
    replacement = file.with_suffix(".new")
    replacement.write_text(OTHER)
    replacement.replace(file)
    clock.now += 2
    assert await admin.authenticate(with_header(f"Bearer {OTHER}")) == ADMIN
    with pytest.raises(Unauthenticated):
        await admin.authenticate(with_header(f"Bearer {TOKEN}"))


@pytest.mark.parametrize("content", [None, "", "short", "with a space in it, but long enough", "x" * 5000, "\xff" * 32])
async def test_a_file_without_a_token_lets_nobody_in(file: Path, clock: Clock, content: str | None) -> None:
    admin = AdminToken(file, clock=clock)
    await admin.authenticate(with_header(f"Bearer {TOKEN}"))
    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="latin-1")
    clock.now += 2
    for token in (TOKEN, content or "x"):
        with pytest.raises(Unauthenticated):
            await admin.authenticate(with_header(f"Bearer {token}"))
