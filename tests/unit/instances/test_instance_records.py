"""The records of the `local` driver survive a kill, and never show half an instance."""

from pathlib import Path

import pytest

from kairship.instances.drivers.driver import DriverError
from kairship.instances.drivers.local.instance_record import Record, Records, Upgrade


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)


def test_a_record_comes_back_as_it_was_written(records: Records) -> None:
    record = Record("uid", "name", "v1", upgrade=Upgrade("v2", "digest", abandoned=True), restoring=True)
    assert records.read("uid") is None
    with pytest.raises(DriverError, match="no local instance with UID uid"):
        records.require("uid")
    records.write(record)
    assert records.read("uid") == record
    assert list(records.all()) == [record]


@pytest.mark.parametrize("content", [b"", b"{", b'{"uid": 1}', b"\xff"])
def test_a_damaged_record_is_told_and_concerns_nobody_else(records: Records, tmp_path: Path, content: bytes) -> None:
    records.write(well := Record("well", "well", "v1"))
    records.write(Record("ill", "ill", "v1"))
    (tmp_path / "ill" / "instance.json").write_bytes(content)
    with pytest.raises(DriverError, match="is damaged"):
        records.require("ill")
    assert list(records.all()) == [well]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (Record("uid", "name", "v1"), None),
        (Record("uid", "name", "v1", restoring=True), "run it again"),
        (Record("uid", "name", "v1", Upgrade("v2", "")), "resume it or roll it back"),
        (Record("uid", "name", "v1", Upgrade("v2", "", abandoned=True)), "finish that first"),
    ],
)
def test_what_is_unfinished_says_what_to_do(record: Record, said: str | None) -> None:
    assert record.unfinished is None if said is None else said in str(record.unfinished)


async def test_an_instance_that_is_being_removed_is_none(records: Records, tmp_path: Path) -> None:
    records.write(Record("uid", "name", "v1"))
    records.directory("uid").rename(tmp_path / ".deleting-uid")  # killed right here
    assert records.read("uid") is None
    assert list(records.all()) == []
    await records.remove("uid")
    assert list(tmp_path.iterdir()) == []
    await records.remove("uid")


async def test_a_removal_that_met_a_new_instance_of_the_same_uid_removes_both(records: Records, tmp_path: Path) -> None:
    records.write(Record("uid", "name", "v1"))
    records.directory("uid").rename(tmp_path / ".deleting-uid")
    records.write(Record("uid", "name", "v1"))
    await records.remove("uid")
    assert list(tmp_path.iterdir()) == []


async def test_what_cannot_be_removed_is_not_called_removed(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    records.write(Record("uid", "name", "v1"))

    def refuse(path: Path) -> None:
        raise PermissionError(f"cannot remove {path}")

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(PermissionError):
        await records.remove("uid")
