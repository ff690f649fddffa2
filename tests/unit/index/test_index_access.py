"""Opening the index: the process runs whatever it finds there, and reads go to the clusters until the index is open."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import structlog
from support.waiting import eventually

from kairship.index.index_access import IndexAccess, IndexLocation
from kairship.index.sqlite import page_token_key


@asynccontextmanager
async def opening(place: IndexLocation) -> AsyncIterator[IndexAccess]:
    access = IndexAccess(place)
    running = asyncio.create_task(access.run())
    await asyncio.sleep(0)
    try:
        yield access
        if running.done():
            running.result()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def until_open(access: IndexAccess) -> None:
    await eventually(lambda: access.opened is not None, "the index being open")


async def test_a_directory_is_open_at_once_and_closed_in_the_end(tmp_path: Path) -> None:
    async with opening(IndexLocation(tmp_path / "index")) as access:
        await until_open(access)
        assert access.current() is not None
    assert access.current() is None


async def test_without_a_place_there_is_none() -> None:
    async with opening(IndexLocation()) as access:
        assert access.current() is None


@pytest.mark.parametrize("text", ["garbage", "postgresql://user:hunter2@127.0.0.1:1/x", "\udcff", ""])
async def test_a_database_that_is_none_or_does_not_answer_is_no_reason_to_end(tmp_path: Path, text: str) -> None:
    file = tmp_path / "url"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with structlog.testing.capture_logs() as logs:
        async with opening(IndexLocation(url_file=file)) as access:
            await eventually(lambda: logs, "the warning")
            assert access.current() is None
    assert "hunter2" not in str(logs)


async def test_a_log_of_writes_that_is_damaged_is_said_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "writes.db").write_bytes(b"not a database" * 1000)
    with structlog.testing.capture_logs() as logs:
        async with opening(IndexLocation(tmp_path)) as access:
            await eventually(lambda: logs, "the warning")
            assert access.current() is None


def test_the_key_of_tokens_is_one_for_all_and_whole(tmp_path: Path) -> None:
    key = page_token_key(tmp_path)
    assert page_token_key(tmp_path) == key
    assert len(key) == 32
    file = tmp_path / "page-tokens.key"
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(b"")
    assert len(page_token_key(tmp_path)) == 32
