"""Writes the file of one cluster. Every call is one transaction, in a thread, one at a time.

A file has one writer. A file that is damaged or has another format is abandoned and a new file is begun, at the start
or later: then the call raises `BrokenIndexError`, and the collector lists everything again. Commits are not synced to
disk one by one: after a crash of the machine the file is intact and a little older, and the lists that follow every
start make up for it.
"""

import asyncio
import time
from array import array
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec
import structlog

from kairship.index.change_feed import MOST_CHANGES
from kairship.index.records import Record
from kairship.index.selectable_fields import kind_name
from kairship.index.sqlite import files, schema
from kairship.index.sqlite.clock import since_boot
from kairship.index.sqlite.sizes import sizes
from kairship.index.sqlite.statements import one, prepare_once, rows
from kairship.index.sqlite.threads import in_thread
from kairship.index.store import BrokenIndexError, Change, NoSuchClusterError, Size
from kairship.index.tokens import is_owner
from kairship.kube import Resource

T = TypeVar("T")

log = structlog.get_logger(__name__)

_TOMB_KEPT = 600.0
_BUSY_MS = 5000
_LOG_KEPT = 16 * 1024 * 1024  # a first list leaves a write-ahead log as large as itself
_AFTER_ALL = 2**63 - 1
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)


class SqliteWriter:
    """Created by `open`."""

    def __init__(self, root: Path, cluster: str, db: apsw.Connection, wall: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._db = db
        self._wall = wall
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, root: Path, cluster: str, *, wall: Callable[[], float] = time.time) -> "SqliteWriter":
        return cls(root, cluster, await in_thread(lambda: _open(root, cluster)), wall)

    async def begin(self, resource: Resource) -> None:
        def begin() -> None:
            now = self._wall()
            kind = kind_name(resource)
            found = one(self._db, "SELECT epoch FROM part WHERE name = ?", (kind,))
            epoch = max(int(now * 1e6), found[0] + 1 if found else 0)
            self._db.execute(
                "INSERT INTO part(name, resource, epoch, began, revision, live, heard, begun, left_out)"
                " VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?) ON CONFLICT(name) DO UPDATE SET resource = excluded.resource,"
                " epoch = excluded.epoch, begun = excluded.begun, live = 0, left_out = excluded.left_out",
                (kind, msgspec.json.encode(resource), epoch, now, since_boot(), msgspec.json.encode([])),
            )

        await self._run(begin)

    async def put(self, resource: Resource, records: Sequence[Record], *, left_out: Collection[str] = ()) -> None:
        def put() -> None:
            part, epoch = self._partition(resource)
            self._leave_out(part, left_out)
            was_listed = self._was_listed(part)
            for record in records:
                # A restore brings deleted objects back: their next deletion is yet to come.
                self._db.execute("DELETE FROM tomb WHERE uid = ? AND part = ?", (record.uid, part))
                if self._put(part, epoch, record) and was_listed:
                    self._log_change(resource, record.key, record.uid)

        await self._run(put)

    async def end(self, resource: Resource, revision: int) -> None:
        def end() -> None:
            part, epoch = self._partition(resource)
            if self._was_listed(part):
                self._remove_where(part, "epoch < ?", epoch, logged_as=resource)
            else:
                self._remove_where(part, "epoch < ?", epoch)
                self._log_change(resource, "", "")
            self._db.execute(
                "UPDATE part SET began = ?, revision = ?, live = 1, heard = ? WHERE id = ?",
                (revision, revision, self._wall(), part),
            )

        await self._run(end)

    async def apply(
        self, resource: Resource, changes: Sequence[Change], revision: int, *, left_out: Collection[str] = ()
    ) -> None:
        def apply() -> None:
            part, epoch = self._partition(resource)
            self._leave_out(part, left_out)
            for change in changes:
                record = change.record
                changed = self._delete(part, epoch, record) if change.deleted else self._put(part, epoch, record)
                if changed:
                    self._log_change(resource, record.key, record.uid, deleted=change.deleted)
            self._db.execute("UPDATE part SET revision = max(revision, ?) WHERE id = ?", (revision, part))

        await self._run(apply)

    async def mark_lost(self, resource: Resource) -> None:
        await self._run(
            lambda: self._db.execute(
                "UPDATE part SET live = 0, heard = ? WHERE name = ? AND live", (self._wall(), kind_name(resource))
            )
        )

    async def drop_kind(self, resource: Resource) -> None:
        def drop_kind() -> None:
            part, _ = self._partition(resource)
            self._remove_where(part, "epoch < ?", _AFTER_ALL)
            self._log_change(resource, "", "", deleted=True)
            self._db.execute("DELETE FROM part WHERE id = ?", (part,))

        await self._run(drop_kind)

    async def expire(self, resource: Resource, created_before: int) -> None:
        def expire() -> None:
            part, _ = self._partition(resource)
            self._remove_where(part, "created < ?", created_before)

        await self._run(expire)

    async def drop_namespaces(self, namespaces: Collection[str]) -> None:
        def drop() -> None:
            for part, encoded in rows(self._db, "SELECT id, resource FROM part"):
                resource = msgspec.json.decode(encoded, type=Resource)
                for namespace in namespaces:
                    # '0' follows '/', so this range of the index has all keys of the namespace.
                    condition = "key >= ? AND key < ?"
                    if self._remove_where(part, condition, f"{namespace}/", f"{namespace}0", logged_as=resource):
                        self._leave_out(part, [namespace])

        await self._run(drop)

    async def kinds(self) -> list[Resource]:
        def kinds() -> list[Resource]:
            found = rows(self._db, "SELECT resource FROM part")
            return [msgspec.json.decode(resource, type=Resource) for (resource,) in found]

        return await self._run(kinds)

    async def sizes(self) -> dict[str, Size]:
        return await self._run(lambda: sizes(self._db))

    async def heartbeat(self) -> None:
        def heartbeat() -> None:
            now = self._wall()
            self._db.execute("UPDATE alive SET at = ?", (now,))
            self._db.execute("DELETE FROM tomb WHERE at < ?", (now - _TOMB_KEPT,))
            self._db.execute("DELETE FROM ring WHERE number <= (SELECT max(number) FROM ring) - ?", (MOST_CHANGES,))

        await self._run(heartbeat)

    async def close(self) -> None:
        async with self._lock:
            await in_thread(self._db.close)

    async def _run(self, work: Callable[[], T]) -> T:
        async with self._lock:
            return await in_thread(lambda: self._transaction(work))

    def _transaction(self, work: Callable[[], T]) -> T:
        try:
            with self._db:
                done = work()
        except _DAMAGED as error:
            log.warning("the index file is damaged and is built anew", cluster=self._cluster, error=str(error))
            self._db.close(True)
            self._db = _new(self._root, self._cluster)
            raise BrokenIndexError(f"the index of cluster {self._cluster} was damaged and is built anew") from error
        except apsw.Error as error:
            raise BrokenIndexError(f"the index of cluster {self._cluster} cannot be written: {error}") from error
        return done

    def _partition(self, resource: Resource) -> tuple[int, int]:
        found = one(self._db, "SELECT id, epoch FROM part WHERE name = ?", (kind_name(resource),))
        if found is None:
            raise BrokenIndexError(f"{kind_name(resource)} of cluster {self._cluster} has to be listed first")
        return found[0], found[1]

    def _was_listed(self, part: int) -> bool:
        """Whether there was a whole list before. The feed has one entry for the whole first list."""
        return one(self._db, "SELECT 1 FROM part WHERE id = ? AND began > 0", (part,)) is not None

    def _log_change(self, resource: Resource, key: str, uid: str, *, deleted: bool = False) -> None:
        self._db.execute(
            "INSERT INTO ring(kind, key, uid, deleted) VALUES (?, ?, ?, ?)", (kind_name(resource), key, uid, deleted)
        )

    def _put(self, part: int, epoch: int, record: Record) -> bool:
        """Stores a record and returns whether it is another object or revision than before."""
        old = one(self._db, "SELECT id, epoch, rv, uid, toks FROM obj WHERE part = ? AND key = ?", (part, record.key))
        tokens = self._token_numbers(part, record.tokens)
        values = (record.uid, record.revision, epoch, record.created, record.bare, tokens.tobytes(), record.body)
        if old is None:
            self._db.execute(
                "INSERT INTO obj(part, key, ns, name, uid, rv, epoch, created, bare, toks, body)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (part, record.key, record.namespace, record.name, *values),
            )
            number, before, is_new = self._db.last_insert_rowid(), set[int](), True
            self._db.execute("INSERT INTO trigram(rowid, name) VALUES (?, ?)", (number, record.name))
        else:
            number, old_epoch, old_revision, old_uid, old_tokens = old
            if (old_epoch, old_revision) > (epoch, record.revision):
                return False
            is_new = (old_revision, old_uid) != (record.revision, record.uid)
            self._db.execute(
                "UPDATE obj SET uid = ?, rv = ?, epoch = ?, created = ?, bare = ?, toks = ?, body = ? WHERE id = ?",
                (*values, number),
            )
            if old_uid != record.uid:
                self._bury(part, old_uid)
            before = set(array("q", old_tokens))
        now = set(tokens)
        if added := now - before:
            posted = [(token, record.key, number) for token in added]
            self._db.executemany("INSERT OR IGNORE INTO post VALUES (?, ?, ?)", posted)
        self._unpost(record.key, number, before - now)
        return is_new

    def _delete(self, part: int, epoch: int, record: Record) -> bool:
        """Deletes an object and returns whether it existed."""
        found = one(self._db, "SELECT id, epoch, rv, uid, toks FROM obj WHERE part = ? AND key = ?", (part, record.key))
        self._bury(part, record.uid)
        if found is not None and (found[1], found[2]) <= (epoch, record.revision):
            self._remove(part, record.key, found[0], found[3], found[4])
            return True
        return False

    def _remove(self, part: int, key: str, number: int, uid: str, tokens: bytes) -> None:
        self._db.execute("DELETE FROM obj WHERE id = ?", (number,))
        self._db.execute("DELETE FROM trigram WHERE rowid = ?", (number,))
        self._unpost(key, number, set(array("q", tokens)))
        self._bury(part, uid)

    def _remove_where(self, part: int, condition: str, *values: str | int, logged_as: Resource | None = None) -> bool:
        """Removes objects in batches, which bounds memory, and returns whether there were any."""
        query = f"SELECT id, key, uid, toks FROM obj WHERE part = ? AND {condition} LIMIT 1000"  # noqa: S608
        found = False
        while gone := rows(self._db, query, (part, *values)):
            found = True
            for number, key, uid, tokens in gone:
                self._remove(part, key, number, uid, tokens)
                if logged_as is not None:
                    self._log_change(logged_as, key, uid, deleted=True)
        return found

    def _leave_out(self, part: int, namespaces: Collection[str]) -> None:
        if namespaces:
            ((encoded,),) = rows(self._db, "SELECT left_out FROM part WHERE id = ?", (part,))
            known = msgspec.json.decode(encoded, type=set[str])
            left_out = msgspec.json.encode(sorted(known.union(namespaces)))
            self._db.execute("UPDATE part SET left_out = ? WHERE id = ?", (left_out, part))

    def _bury(self, part: int, uid: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO tomb VALUES (?, ?, ?)", (uid, part, self._wall()))

    def _unpost(self, key: str, number: int, tokens: set[int]) -> None:
        for token in tokens:
            self._db.execute("DELETE FROM post WHERE tok = ? AND key = ? AND obj = ?", (token, key, number))
            # Tokens that no object has any more are removed, because owners and template hashes come and go.
            self._db.execute(
                "DELETE FROM tok WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM post WHERE tok = ?1)", (token,)
            )

    def _token_numbers(self, part: int, tokens: frozenset[str]) -> "array[int]":
        numbers = array("q")
        for text in tokens:
            row: tuple[Any, ...] = (0 if is_owner(text) else part, text)
            found = one(self._db, "SELECT id FROM tok WHERE part = ? AND text = ?", row)
            if found is None:
                self._db.execute("INSERT INTO tok(part, text) VALUES (?, ?)", row)
                numbers.append(self._db.last_insert_rowid())
            else:
                numbers.append(found[0])
        return numbers


def _open(root: Path, cluster: str) -> apsw.Connection:
    try:
        file = files.current(root, cluster)
        db = _connect(file, apsw.SQLITE_OPEN_READWRITE)
        try:
            if schema.is_ours(db):
                # No kind is being followed yet, whatever the writer before this one left behind.
                db.execute("UPDATE part SET live = 0")
                return db
        except apsw.Error:
            db.close(True)
            raise
        db.close()
    except NoSuchClusterError:
        pass
    except apsw.Error as error:
        log.warning("the index file cannot be used and is built anew", cluster=cluster, error=str(error))
    return _new(root, cluster)


def _new(root: Path, cluster: str) -> apsw.Connection:
    file = files.new(root, cluster)
    db = _connect(file, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    schema.create(db)
    file.chmod(0o600)
    files.point_to(file)
    return db


def _connect(file: Path, flags: int) -> apsw.Connection:
    db = apsw.Connection(str(file), flags=flags)
    db.set_busy_timeout(_BUSY_MS)
    prepare_once(db)
    db.pragma("synchronous", "normal")
    db.pragma("journal_size_limit", _LOG_KEPT)
    return db
