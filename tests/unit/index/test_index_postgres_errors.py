"""Errors of PostgreSQL as errors of the index, and cancellations that stay cancellations."""

import asyncio

import asyncpg
import pytest

from kairship.index import BrokenIndexError
from kairship.index.postgres.database_errors import typed_errors


async def test_an_error_is_told_by_its_type_alone() -> None:
    with pytest.raises(BrokenIndexError) as raised, typed_errors():
        raise asyncpg.PostgresError("duplicate key (password)=(secret)")
    assert "secret" not in str(raised.value)


async def test_a_cancelled_task_is_cancelled_also_if_its_connection_cannot_be_returned() -> None:
    began = asyncio.Event()

    async def read() -> None:
        with typed_errors():
            try:
                began.set()
                await asyncio.Event().wait()
            finally:
                raise TimeoutError

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    await asyncio.wait((task,), timeout=5)
    assert task.cancelled()


async def test_a_read_that_takes_too_long_times_out_for_who_set_the_limit() -> None:
    async def read() -> None:
        async with asyncio.timeout(0.01):
            with typed_errors():
                try:
                    await asyncio.Event().wait()
                finally:
                    raise OSError

    with pytest.raises(TimeoutError):
        await read()


async def test_a_cancellation_before_does_not_hide_an_error() -> None:
    async def read() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with typed_errors():
                raise OSError from None

    task = asyncio.create_task(read())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(BrokenIndexError):
        await task
