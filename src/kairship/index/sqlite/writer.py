"""Writing the file of one cluster: every call is one transaction, in a thread, one at a time.

The writer is the only one of its file. A file that is damaged, of another format or of nobody is left and a new one
begun, at the start or in the middle: the call raises `BrokenIndexError`, and whoever fills the index lists everything
again. Commits are not synced to disk one by one: after a crash of the machine the file is whole and a little older,
and the lists that follow every start make up for it.
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

from kairship.index.fields import kind_name
from kairship.index.records import Record
from kairship.index.ring import KEPT
from kairship.index.sqlite import files, schema
from kairship.index.sqlite.clock import since_boot
from kairship.index.sqlite.statements import one, prepare_once, rows
from kairship.index.sqlite.threads import in_thread
from kairship.index.store import BrokenIndexError, Change, NoSuchClusterError
from kairship.index.tokens import is_owner
from kairship.kube import Resource

T = TypeVar("T")

log = structlog.get_logger(__name__)

_TOMB_KEPT = 600.0
_BUSY_MS = 5000
_LOG_KEPT = 16 * 1024 * 1024  # a first list leaves a log as large as itself
_AFTER_ALL = 2**63 - 1
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)


class SqliteWriter:
    """Made by `open`."""

    def __init__(self, root: Path, cluster: str, db: apsw.Connection, wall: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._db = db
        self._wall = wall
        self._turn = asyncio.Lock()

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
            part, epoch = self._part(resource)
            self._leave_out(part, left_out)
            told = self._was_listed(part)
            for record in records:
                # A restore brings back what was deleted: its next deletion is yet to come.
                self._db.execute("DELETE FROM tomb WHERE uid = ? AND part = ?", (record.uid, part))
                if self._put(part, epoch, record) and told:
                    self._tell(resource, record.key, record.uid)

        await self._run(put)

    async def end(self, resource: Resource, revision: int) -> None:
        def end() -> None:
            part, epoch = self._part(resource)
            if self._was_listed(part):
                self._remove_where(part, "epoch < ?", epoch, told=resource)
            else:
                self._remove_where(part, "epoch < ?", epoch)
                self._tell(resource, "", "")
            self._db.execute(
                "UPDATE part SET began = ?, revision = ?, live = 1, heard = ? WHERE id = ?",
                (revision, revision, self._wall(), part),
            )

        await self._run(end)

    async def apply(
        self, resource: Resource, changes: Sequence[Change], revision: int, *, left_out: Collection[str] = ()
    ) -> None:
        def apply() -> None:
            part, epoch = self._part(resource)
            self._leave_out(part, left_out)
            for change in changes:
                record = change.record
                changed = self._delete(part, epoch, record) if change.deleted else self._put(part, epoch, record)
                if changed:
                    self._tell(resource, record.key, record.uid, deleted=change.deleted)
            self._db.execute("UPDATE part SET revision = max(revision, ?) WHERE id = ?", (revision, part))

        await self._run(apply)

    async def lose(self, resource: Resource) -> None:
        await self._run(
            lambda: self._db.execute(
                "UPDATE part SET live = 0, heard = ? WHERE name = ? AND live", (self._wall(), kind_name(resource))
            )
        )

    async def forget(self, resource: Resource) -> None:
        def forget() -> None:
            part, _ = self._part(resource)
            self._remove_where(part, "epoch < ?", _AFTER_ALL)
            self._tell(resource, "", "", deleted=True)
            self._db.execute("DELETE FROM part WHERE id = ?", (part,))

        await self._run(forget)

    async def expire(self, resource: Resource, created_before: int) -> None:
        def expire() -> None:
            part, _ = self._part(resource)
            self._remove_where(part, "created < ?", created_before)

        await self._run(expire)

    async def drop_namespaces(self, namespaces: Collection[str]) -> None:
        def drop() -> None:
            for part, encoded in rows(self._db, "SELECT id, resource FROM part"):
                resource = msgspec.json.decode(encoded, type=Resource)
                for namespace in namespaces:
                    # '0' follows '/': all keys of the namespace, as a range of the index.
                    condition = "key >= ? AND key < ?"
                    if self._remove_where(part, condition, f"{namespace}/", f"{namespace}0", told=resource):
                        self._leave_out(part, [namespace])

        await self._run(drop)

    async def kinds(self) -> list[Resource]:
        def kinds() -> list[Resource]:
            found = rows(self._db, "SELECT resource FROM part")
            return [msgspec.json.decode(resource, type=Resource) for (resource,) in found]

        return await self._run(kinds)

    async def hear(self) -> None:
        def hear() -> None:
            now = self._wall()
            self._db.execute("UPDATE alive SET at = ?", (now,))
            self._db.execute("DELETE FROM tomb WHERE at < ?", (now - _TOMB_KEPT,))
            self._db.execute("DELETE FROM ring WHERE number <= (SELECT max(number) FROM ring) - ?", (KEPT,))

        await self._run(hear)

    async def close(self) -> None:
        async with self._turn:
            await in_thread(self._db.close)

    async def _run(self, work: Callable[[], T]) -> T:
        async with self._turn:
            return await in_thread(lambda: self._transaction(work))

    def _transaction(self, work: Callable[[], T]) -> T:
        try:
            with self._db:
                done = work()
        except _DAMAGED as error:
            log.warning("index file is damaged and begun anew", cluster=self._cluster, error=str(error))
            self._db.close(True)
            self._db = _new(self._root, self._cluster)
            raise BrokenIndexError(f"the index of cluster {self._cluster} was damaged and is built anew") from error
        except apsw.Error as error:
            raise BrokenIndexError(f"the index of cluster {self._cluster} cannot be written: {error}") from error
        return done

    def _part(self, resource: Resource) -> tuple[int, int]:
        found = one(self._db, "SELECT id, epoch FROM part WHERE name = ?", (kind_name(resource),))
        if found is None:
            raise BrokenIndexError(f"{kind_name(resource)} of cluster {self._cluster} has to be listed first")
        return found[0], found[1]

    def _was_listed(self, part: int) -> bool:
        """Whether there was a whole list before. Of the first one it is enough to know that it is there."""
        return one(self._db, "SELECT 1 FROM part WHERE id = ? AND began > 0", (part,)) is not None

    def _tell(self, resource: Resource, key: str, uid: str, *, deleted: bool = False) -> None:
        self._db.execute(
            "INSERT INTO ring(kind, key, uid, deleted) VALUES (?, ?, ?, ?)", (kind_name(resource), key, uid, deleted)
        )

    def _put(self, part: int, epoch: int, record: Record) -> bool:
        """Whether it is another object or revision than before."""
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
        """Whether it was there."""
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

    def _remove_where(self, part: int, condition: str, *values: str | int, told: Resource | None = None) -> bool:
        """A batch at a time: there may be more than memory should hold. Whether there was any."""
        query = f"SELECT id, key, uid, toks FROM obj WHERE part = ? AND {condition} LIMIT 1000"  # noqa: S608
        found = False
        while gone := rows(self._db, query, (part, *values)):
            found = True
            for number, key, uid, tokens in gone:
                self._remove(part, key, number, uid, tokens)
                if told is not None:
                    self._tell(told, key, uid, deleted=True)
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
            # A token that nobody has would stay for ever: owners and template hashes come and go.
            self._db.execute(
                "DELETE FROM tok WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM post WHERE tok = ?1)", (token,)
            )

    def _token_numbers(self, part: int, tokens: frozenset[str]) -> "array[int]":
        numbers = array("q")
        for text in tokens:
            place: tuple[Any, ...] = (0 if is_owner(text) else part, text)
            found = one(self._db, "SELECT id FROM tok WHERE part = ? AND text = ?", place)
            if found is None:
                self._db.execute("INSERT INTO tok(part, text) VALUES (?, ?)", place)
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
                # Nobody follows anything yet, whatever the writer before this one left behind.
                db.execute("UPDATE part SET live = 0")
                return db
        except apsw.Error:
            db.close(True)
            raise
        db.close()
    except NoSuchClusterError:
        pass
    except apsw.Error as error:
        log.warning("index file cannot be used and is begun anew", cluster=cluster, error=str(error))
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
