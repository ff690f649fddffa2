"""The files of the SQLite index after a kill, after damage, of another format, and replaced under open readers."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import apsw
import pytest
from support.index_objects import body, fill, keys
from support.waiting import PATIENCE

from kairship.index import BrokenIndexError, NoSuchClusterError, Query, VisibleScope, plan
from kairship.index.sqlite import SqliteIndex, SqliteWriter, clusters, remove_cluster
from kairship.kube import kinds

EVERYTHING = plan(Query(scopes=(VisibleScope("one"),)))


@pytest.fixture
def index(tmp_path: Path) -> SqliteIndex:
    return SqliteIndex(tmp_path)


def files(root: Path) -> list[Path]:
    return sorted((root / "one").glob("*.db"))


async def test_what_was_written_is_there_after_a_restart_but_not_live(tmp_path: Path, index: SqliteIndex) -> None:
    writer = await SqliteWriter.open(tmp_path, "one")
    await fill(writer, kinds.CONFIGMAPS, body("a"))
    await writer.close()
    writer = await SqliteWriter.open(tmp_path, "one")
    assert await keys(index) == ["default/a"]
    async with index.snapshot("one") as snapshot:
        partition = await snapshot.partition("configmaps")
    assert partition is not None
    assert not partition.live
    await writer.close()
    index.close()


@pytest.mark.parametrize("damage", ["noise", "empty", "foreign", "pointer", "gone"])
async def test_a_file_that_is_of_no_use_is_begun_anew(tmp_path: Path, index: SqliteIndex, damage: str) -> None:
    writer = await SqliteWriter.open(tmp_path, "one")
    await fill(writer, kinds.CONFIGMAPS, body("a"))
    await writer.close()
    (file,) = files(tmp_path)
    match damage:
        case "noise":
            file.write_bytes(os.urandom(50_000))
        case "empty":
            file.write_bytes(b"")
        case "foreign":
            db = apsw.Connection(str(file))
            db.pragma("user_version", 9999)
            db.close()
        case "pointer":
            (file.parent / "current").write_text("../../etc/passwd")
        case "gone":
            file.unlink()
    with pytest.raises((BrokenIndexError, NoSuchClusterError)):
        async with index.snapshot("one") as snapshot:
            await snapshot.count(EVERYTHING)
    writer = await SqliteWriter.open(tmp_path, "one")
    (new,) = files(tmp_path)
    assert new != file
    assert await keys(index, kinds=None) == []
    await fill(writer, kinds.CONFIGMAPS, body("b"))
    assert await keys(index) == ["default/b"]
    await writer.close()
    index.close()


async def test_damage_while_it_is_written_is_noticed_and_mended(tmp_path: Path, index: SqliteIndex) -> None:
    writer = await SqliteWriter.open(tmp_path, "one")
    many = [body(f"a{number}", data={"x": "y" * 3000}) for number in range(300)]
    await fill(writer, kinds.CONFIGMAPS, *many)
    await writer.close()
    writer = await SqliteWriter.open(tmp_path, "one")
    (file,) = files(tmp_path)
    size = file.stat().st_size
    with file.open("r+b") as damaged:
        damaged.seek(16384)
        damaged.write(os.urandom(size - 16384))
    with pytest.raises(BrokenIndexError):
        await fill(writer, kinds.CONFIGMAPS, *many)
    await fill(writer, kinds.CONFIGMAPS, body("b"))
    assert await keys(index) == ["default/b"]
    await writer.close()
    index.close()


async def test_readers_go_on_through_a_change_of_file(tmp_path: Path, index: SqliteIndex) -> None:
    writer = await SqliteWriter.open(tmp_path, "one")
    await fill(writer, kinds.CONFIGMAPS, body("a"))
    async with index.snapshot("one") as before:
        assert await before.count(EVERYTHING) == 1
        await writer.close()
        await asyncio.to_thread(remove_cluster, tmp_path, "one")
        writer = await SqliteWriter.open(tmp_path, "one")
        await fill(writer, kinds.CONFIGMAPS, body("b"), body("c"))
        async with index.snapshot("one") as after:
            assert await after.count(EVERYTHING) == 2
        assert await before.count(EVERYTHING) == 1
    assert await keys(index) == ["default/b", "default/c"]
    await writer.close()
    index.close()


@pytest.mark.parametrize("cluster", ["", "..", "a/b", "/etc", "a\0", "ü"])
def test_a_cluster_is_no_path(tmp_path: Path, cluster: str) -> None:
    with pytest.raises(ValueError, match="uid"):
        remove_cluster(tmp_path, cluster)


WRITER = """
import asyncio, sys
from pathlib import Path
from support.index_objects import body
from kairship.index import Change, RecordBuilder
from kairship.index.sqlite import SqliteWriter
from kairship.kube import kinds

async def main():
    writer = await SqliteWriter.open(Path(sys.argv[1]), "one")
    builder = RecordBuilder(kinds.CONFIGMAPS)
    await writer.begin(kinds.CONFIGMAPS)
    await writer.end(kinds.CONFIGMAPS, 1)
    revision = 1
    while True:
        # Two objects in each transaction, always with the same revision.
        revision += 1
        pair = [Change(builder.record(body(name, revision=revision, labels={"r": str(revision)}))) for name in "ab"]
        await writer.apply(kinds.CONFIGMAPS, pair, revision)
        print(revision, flush=True)

asyncio.run(main())
"""


async def test_a_kill_in_the_middle_leaves_whole_transactions(tmp_path: Path, index: SqliteIndex) -> None:
    tests = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent / "src")))}
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(tmp_path), stdout=asyncio.subprocess.PIPE, env=environment
        )
        assert process.stdout is not None
        written = 0
        while written < 200:
            written = int(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with index.snapshot("one") as snapshot:
            partition = await snapshot.partition("configmaps")
            rows = [(await snapshot.get("configmaps", f"default/{name}"))[1] for name in "ab"]
        assert partition is not None
        assert partition.revision >= written
        expected = f'"resourceVersion":"{partition.revision}"'.encode()
        assert all(row is not None and expected in row.body for row in rows)
        check = apsw.Connection(str(files(tmp_path)[0]), flags=apsw.SQLITE_OPEN_READONLY)
        assert check.pragma("integrity_check") == "ok"
        check.close()
    index.close()


async def test_folders_of_others_beside_the_clusters_are_not_taken_for_one(tmp_path: Path) -> None:
    assert clusters(tmp_path / "none") == set()
    writer = await SqliteWriter.open(tmp_path, "one")
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "key").write_text("x")
    assert clusters(tmp_path) == {"one"}
    await writer.close()
    remove_cluster(tmp_path, "one")
    assert clusters(tmp_path) == set()
