"""An archive copies the engine to another machine, and nothing else."""

import gzip
import io
import json
import stat
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from unit.engine.workshop import Workshop

from kairship.engine import Event, Group, lock, pack, unpack
from kairship.engine.cache import Cache
from kairship.engine.errors import ArchiveError, EngineBusyError, NotBuiltError
from kairship.engine.progress import Packing

BINARIES = {"fast": b"fast" * 1000, "slow": b"slow" * 1000}


@pytest.fixture
def packed(workshop: Workshop, tmp_path: Path) -> Path:
    """An archive of the small engine, whose binaries have a few bytes."""
    module = workshop.catalogue.modules[0]
    home = workshop.cache.home(module)
    (home / "share" / "demo-files" / "deep").mkdir(parents=True)
    (home / "share" / "demo-files" / "deep" / "kept.yaml").write_text("kept: true\n")
    for name, content in BINARIES.items():
        (home / name).write_bytes(content)
    path = tmp_path / "engine.tar.gz"
    pack(path, catalogue=workshop.catalogue, cache=workshop.cache)
    return path


@pytest.fixture
def elsewhere(workshop: Workshop, tmp_path: Path) -> Workshop:
    """The same kairship on a machine where nothing has been built."""
    return replace(workshop, cache=Cache(tmp_path / "elsewhere"))


def _unpack(path: Path, machine: Workshop) -> None:
    unpack(path, catalogue=machine.catalogue, cache=machine.cache)


def _files(machine: Workshop) -> dict[str, bytes]:
    home = machine.cache.home(machine.catalogue.modules[0])
    return {file.relative_to(home).as_posix(): file.read_bytes() for file in home.rglob("*") if file.is_file()}


def test_what_was_packed_is_there_after_unpacking(packed: Path, workshop: Workshop, elsewhere: Workshop) -> None:
    events: list[Event] = []
    unpack(packed, catalogue=elsewhere.catalogue, cache=elsewhere.cache, progress=events.append)
    assert _files(elsewhere) == {**BINARIES, "share/demo-files/deep/kept.yaml": b"kept: true\n"}
    assert _files(elsewhere) == _files(workshop)
    fast = elsewhere.cache.binary(elsewhere.catalogue.find("fast"))
    assert stat.S_IMODE(fast.stat().st_mode) == 0o755
    assert isinstance(events[-1], Packing)
    assert events[-1].done_bytes == events[-1].total_bytes > 0
    assert elsewhere.workspaces() == []
    _unpack(packed, elsewhere)
    assert _files(elsewhere) == _files(workshop)


def test_packing_twice_gives_the_same_bytes(packed: Path, workshop: Workshop, tmp_path: Path) -> None:
    again = tmp_path / "again" / packed.name
    again.parent.mkdir()
    pack(again, catalogue=workshop.catalogue, cache=workshop.cache)
    assert again.read_bytes() == packed.read_bytes()


def test_only_what_is_built_can_be_packed(packed: Path, workshop: Workshop, tmp_path: Path) -> None:
    path = tmp_path / "more.tar.gz"
    with pytest.raises(NotBuiltError, match=r"extra v1\.2\.3"):
        pack(path, (Group.PLANE, Group.TEST), catalogue=workshop.catalogue, cache=workshop.cache)
    assert not list(tmp_path.glob("more*"))


def test_unpacking_does_not_disturb_a_build(packed: Path, elsewhere: Workshop) -> None:
    with lock.held(elsewhere.cache.lock), pytest.raises(EngineBusyError, match="another process"):
        _unpack(packed, elsewhere)


Member = tuple[tarfile.TarInfo, bytes]


@dataclass
class Forgery:
    """An archive that is unpacked, changed and packed again."""

    manifest: dict[str, Any]
    members: list[Member]

    @classmethod
    def of(cls, path: Path) -> "Forgery":
        with tarfile.open(path) as tar:
            members = [(member, _content(tar, member)) for member in tar]
        return cls(manifest=json.loads(members[0][1]), members=members[1:])

    def write(self, path: Path) -> None:
        data = json.dumps(self.manifest).encode()
        head = tarfile.TarInfo("manifest.json")
        head.size = len(data)
        with tarfile.open(path, "w:gz") as tar:
            for member, content in [(head, data), *self.members]:
                tar.addfile(member, io.BytesIO(content))

    def member(self, ending: str) -> int:
        return next(index for index, (member, _) in enumerate(self.members) if member.name.endswith(ending))

    def rename(self, ending: str, name: str) -> None:
        """Renames a file both in the manifest and in the archive, so that only the name itself is wrong."""
        member = self.members[self.member(ending)][0]
        for file in self.manifest["files"]:
            if file["path"] == member.name:
                file["path"] = name
        member.name = name


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    content = tar.extractfile(member)
    assert content
    return content.read()


def _other_format(forgery: Forgery) -> None:
    forgery.manifest = {"format": 2, "everything": "else"}


def _no_fields(forgery: Forgery) -> None:
    del forgery.manifest["modules"]


def _other_platform(forgery: Forgery) -> None:
    forgery.manifest["platform"] = "plan9-mips"


def _unknown_module(forgery: Forgery) -> None:
    forgery.manifest["modules"]["other"] = forgery.manifest["modules"]["demo"]


def _other_version(forgery: Forgery) -> None:
    forgery.manifest["modules"]["demo"] = {"key": "0", "versions": {"fast": "v1.2.2", "slow": "v1.2.3"}}


def _other_key(forgery: Forgery) -> None:
    forgery.manifest["modules"]["demo"]["key"] = "0"


def _changed_byte(forgery: Forgery) -> None:
    member, content = forgery.members[forgery.member("fast")]
    forgery.members[forgery.member("fast")] = (member, b"F" + content[1:])


def _shorter(forgery: Forgery) -> None:
    member, content = forgery.members[forgery.member("fast")]
    member.size = len(content) - 1
    forgery.members[forgery.member("fast")] = (member, content[:-1])


def _missing_file(forgery: Forgery) -> None:
    del forgery.members[forgery.member("slow")]


def _unlisted_file(forgery: Forgery) -> None:
    forgery.manifest["files"].pop()


def _doubled_file(forgery: Forgery) -> None:
    forgery.members.append(forgery.members[0])


def _upward(forgery: Forgery) -> None:
    forgery.rename("kept.yaml", forgery.members[0][0].name.rsplit("/", 1)[0] + "/share/demo-files/../../evil")


def _absolute(forgery: Forgery) -> None:
    forgery.rename("fast", "/tmp/evil")


def _dotted(forgery: Forgery) -> None:
    name = forgery.members[forgery.member("fast")][0].name
    forgery.rename("fast", f"./{name}")


def _foreign_folder(forgery: Forgery) -> None:
    forgery.rename("fast", ".lock")


def _foreign_name(forgery: Forgery) -> None:
    forgery.rename("fast", forgery.members[forgery.member("fast")][0].name.replace("fast", "other"))


def _link(kind: bytes) -> Callable[[Forgery], None]:
    def change(forgery: Forgery) -> None:
        member, _ = forgery.members[forgery.member("fast")]
        member.type, member.linkname, member.size = kind, "/etc/passwd", 0
        forgery.members[forgery.member("fast")] = (member, b"")

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(_other_format, "format is 2, known is 1", id="format"),
        pytest.param(_no_fields, "manifest cannot be read", id="fields"),
        pytest.param(_other_platform, "made for plan9-mips, this machine is", id="platform"),
        pytest.param(_unknown_module, "a module other", id="module"),
        pytest.param(_other_version, r"demo has other pins: .*fast v1\.2\.2 instead of v1\.2\.3", id="version"),
        pytest.param(_other_key, "demo has other pins: the same versions, but", id="key"),
        pytest.param(_changed_byte, "fast does not have the hash", id="hash"),
        pytest.param(_shorter, "fast has 3999 bytes, 4000 were expected", id="size"),
        pytest.param(_missing_file, "slow is missing", id="missing"),
        pytest.param(_unlisted_file, "is not in its manifest", id="unlisted"),
        pytest.param(_doubled_file, "is there twice", id="doubled"),
        pytest.param(_upward, "does not belong: .*/evil", id="upward"),
        pytest.param(_absolute, "does not belong: /tmp/evil", id="absolute"),
        pytest.param(_dotted, r"does not belong: \./", id="dotted"),
        pytest.param(_foreign_folder, r"does not belong: \.lock", id="foreign folder"),
        pytest.param(_foreign_name, "does not belong: .*other", id="foreign name"),
        pytest.param(_link(tarfile.SYMTYPE), "fast is not a regular file", id="symbolic link"),
        pytest.param(_link(tarfile.LNKTYPE), "fast is not a regular file", id="hard link"),
        pytest.param(_link(tarfile.FIFOTYPE), "fast is not a regular file", id="pipe"),
    ],
)
def test_a_forged_archive_is_refused_and_leaves_nothing(
    packed: Path, elsewhere: Workshop, change: Callable[[Forgery], None], reason: str
) -> None:
    forgery = Forgery.of(packed)
    change(forgery)
    forgery.write(packed)
    with pytest.raises(ArchiveError, match=reason):
        _unpack(packed, elsewhere)
    assert _files(elsewhere) == {}
    assert elsewhere.workspaces() == []


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _noise(_data: bytes) -> bytes:
    return b"no archive at all"


def _other_gzip(_data: bytes) -> bytes:
    return gzip.compress(b"no tar in here" * 100)


@pytest.mark.parametrize("damage", [_cut, _noise, _other_gzip])
def test_a_damaged_archive_is_refused(packed: Path, elsewhere: Workshop, damage: Callable[[bytes], bytes]) -> None:
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(ArchiveError, match="damaged"):
        _unpack(packed, elsewhere)
    assert _files(elsewhere) == {}
