"""The parts of a restore that need no etcd: how far revisions rise, and the swap of the data directories."""

import hashlib
import time
from pathlib import Path

import pytest

from kairship.controlplane import ControlPlane, etcd_snapshot
from kairship.controlplane.etcd_snapshot import SnapshotError


def test_each_restore_of_a_snapshot_starts_above_the_one_before() -> None:
    first = 1_000 + etcd_snapshot.revision_rise(1_000)
    deadline = time.monotonic() + 1
    while 1_000 + etcd_snapshot.revision_rise(1_000) <= first + 1_000:  # a thousand writes, and then another restore
        assert time.monotonic() < deadline
    assert first > 1_700_000_000_000_000


def test_revisions_rise_even_if_the_clock_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert etcd_snapshot.revision_rise(5_000_000) == etcd_snapshot.LEAST_RISE


async def test_a_snapshot_is_recognised_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.db"
    with pytest.raises(SnapshotError, match="no snapshot at"):
        await etcd_snapshot.verify(path, sha256="")
    path.write_bytes(b"content")
    await etcd_snapshot.verify(path, sha256=hashlib.sha256(b"content").hexdigest())
    with pytest.raises(SnapshotError, match="is damaged"):
        await etcd_snapshot.verify(path, sha256=hashlib.sha256(b"contents").hexdigest())


def directory(plane: ControlPlane, name: str, content: str) -> None:
    path = plane.directory / name
    path.mkdir(parents=True)
    (path / "content").write_text(content)


def content(plane: ControlPlane, name: str) -> str:
    return (plane.directory / name / "content").read_text()


def test_the_swap_keeps_what_it_replaces_until_told(paper_plane: ControlPlane) -> None:
    directory(paper_plane, "etcd", "old")
    directory(paper_plane, "etcd.unpacked", "new")
    directory(paper_plane, "etcd.replaced", "older")
    directory(paper_plane, "etcd.unpacking-1234", "torn")
    etcd_snapshot.put_in_place(paper_plane)
    assert (content(paper_plane, "etcd"), content(paper_plane, "etcd.replaced")) == ("new", "old")
    etcd_snapshot.forget_leftovers(paper_plane)
    assert [path.name for path in paper_plane.directory.iterdir()] == ["etcd"]


def test_a_swap_that_was_cut_in_half_is_completed(paper_plane: ControlPlane) -> None:
    directory(paper_plane, "etcd.unpacked", "new")
    directory(paper_plane, "etcd.replaced", "old")
    etcd_snapshot.put_in_place(paper_plane)
    assert (content(paper_plane, "etcd"), content(paper_plane, "etcd.replaced")) == ("new", "old")
