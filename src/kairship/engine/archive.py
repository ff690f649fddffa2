"""Packs the engine into one archive, so that another machine can skip the build.

An archive is a gzipped tar: `manifest.json` first, then the files under the names that they have in the cache.
Unpacking trusts nothing that it reads. It accepts only regular files that the manifest lists, under paths that this
kairship's own catalogue gives them, with the sizes and hashes of the manifest, and it installs nothing before
everything has been checked. The hashes protect against damage. They do not prove who made an archive: only use archives
from a source whose binaries you would run.

`pack` and `unpack` block while they write or read a few gigabytes.
"""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from kairship.engine import lock
from kairship.engine.cache import Cache
from kairship.engine.catalogue import Group
from kairship.engine.errors import ArchiveError, NotBuiltError
from kairship.engine.pins import Catalogue, PinnedModule, Platform
from kairship.engine.progress import Packing, Progress, silent
from kairship.engine.space import disk_full_at, require_room

_FORMAT = 1
_MANIFEST = "manifest.json"
_MANIFEST_LIMIT = 4 << 20
_CHUNK = 1 << 20
# Stripped binaries are dense: higher levels take minutes and save little.
_COMPRESSION = 1


class _Header(msgspec.Struct, frozen=True):
    """The field that every format has, so that a later format is refused with the right reason."""

    format: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    size: int
    sha256: str


class _Contents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    versions: dict[str, str]


class _Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: int
    platform: str
    modules: dict[str, _Contents]
    files: list[_File]


def pack(
    path: Path,
    groups: Collection[Group] = (Group.PLANE,),
    *,
    catalogue: Catalogue | None = None,
    cache: Cache | None = None,
    progress: Progress = silent,
) -> None:
    """Write all files of these groups into one archive. Raises `NotBuiltError` if one is missing."""
    catalogue = catalogue or Catalogue.load()
    cache = cache or Cache.default()
    modules: dict[str, _Contents] = {}
    sources: list[Path] = []
    for module in catalogue.modules:
        binaries = [binary for binary in module.binaries if binary.group in groups]
        if not binaries:
            continue
        modules[module.name] = _contents(module)
        for binary in binaries:
            source = cache.binary(binary)
            if not source.exists():
                raise NotBuiltError(what=f"{binary.name} {binary.version}", group=binary.group, path=source)
            sources.append(source)
        for tree in module.trees:
            sources += sorted(file for file in cache.tree(module, tree).rglob("*") if file.is_file())
    manifest = _Manifest(
        format=_FORMAT,
        platform=str(Platform.here()),
        modules=modules,
        files=[_describe(source, cache) for source in sources],
    )
    partial = path.with_name(f"{path.name}.part")
    try:
        with (
            disk_full_at(path),
            gzip.GzipFile(partial, "wb", compresslevel=_COMPRESSION, mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w|") as tar,
        ):
            _write(tar, manifest, cache, progress)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def unpack(
    path: Path, *, catalogue: Catalogue | None = None, cache: Cache | None = None, progress: Progress = silent
) -> None:
    """Check an archive and put its files into the cache. If a check fails, it raises an error and changes nothing."""
    catalogue = catalogue or Catalogue.load()
    cache = cache or Cache.default()
    with (
        disk_full_at(cache.root),
        _damage_refused(path),
        lock.held(cache.lock),
        cache.workspace() as work,
        gzip.open(path) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        _Unpacking(path, tar, catalogue, cache, work, progress).run()


def _contents(module: PinnedModule) -> _Contents:
    return _Contents(key=module.key, versions={binary.name: binary.version for binary in module.binaries})


def _describe(source: Path, cache: Cache) -> _File:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _File(path=source.relative_to(cache.engine).as_posix(), size=source.stat().st_size, sha256=digest)


def _write(tar: tarfile.TarFile, manifest: _Manifest, cache: Cache, progress: Progress) -> None:
    encoded = msgspec.json.format(msgspec.json.encode(manifest))
    _add(tar, _MANIFEST, len(encoded), io.BytesIO(encoded))
    done, total = 0, sum(file.size for file in manifest.files)
    for file in manifest.files:
        with (cache.engine / file.path).open("rb") as source:
            _add(tar, file.path, file.size, source)
        done += file.size
        progress(Packing(path=file.path, done_bytes=done, total_bytes=total))


def _add(tar: tarfile.TarFile, name: str, size: int, source: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    tar.addfile(member, source)


class _Unpacking:
    """The unpacking of one archive into the cache."""

    def __init__(
        self, path: Path, tar: tarfile.TarFile, catalogue: Catalogue, cache: Cache, work: Path, progress: Progress
    ) -> None:
        self._path = path
        self._tar = tar
        self._modules = {module.name: module for module in catalogue.modules}
        self._cache = cache
        self._work = work
        self._progress = progress

    def run(self) -> None:
        manifest = self._read_manifest()
        self._check_pins(manifest)
        expected = {file.path: file for file in manifest.files}
        for name in expected:
            self._check_path(name, manifest)
        total = sum(file.size for file in manifest.files)
        require_room([(self._cache.root, total)])
        done = 0
        while member := self._tar.next():
            file = expected.pop(member.name, None)
            if file is None:
                raise self._refused(f"{member.name!r} is not in its manifest, or is there twice")
            self._extract(member, file)
            done += file.size
            self._progress(Packing(path=file.path, done_bytes=done, total_bytes=total))
        if expected:
            raise self._refused(f"{min(expected)} is missing")
        self._install(manifest)

    def _read_manifest(self) -> _Manifest:
        member = self._tar.next()
        if member is None or member.name != _MANIFEST or not member.isreg() or member.size > _MANIFEST_LIMIT:
            raise self._refused(f"it does not begin with a {_MANIFEST}: this is no engine archive")
        data = self._content(member).read()
        try:
            if (found := msgspec.json.decode(data, type=_Header).format) != _FORMAT:
                raise self._refused(f"its format is {found}, known is {_FORMAT}")
            return msgspec.json.decode(data, type=_Manifest)
        except msgspec.MsgspecError as error:
            raise self._refused(f"its manifest cannot be read: {error}") from error

    def _check_pins(self, manifest: _Manifest) -> None:
        if manifest.platform != (here := str(Platform.here())):
            raise self._refused(f"it was made for {manifest.platform}, this machine is {here}")
        for name, packed in manifest.modules.items():
            module = self._modules.get(name)
            if module is None:
                raise self._refused(f"it has a module {name}, which this kairship does not know")
            if packed.key != module.key:
                raise self._refused(f"{name} has other pins: {_difference(packed, _contents(module))}")

    def _check_path(self, name: str, manifest: _Manifest) -> None:
        """Refuse names that our own catalogue does not produce, and with them `..` and absolute paths."""
        folders = {self._modules[name].cache_name: self._modules[name] for name in manifest.modules}
        path = PurePosixPath(name)
        match path.parts:
            case [folder, binary] if folder in folders:
                known = binary in {known.name for known in folders[folder].binaries}
            case [folder, "share", tree, *below] if folder in folders:
                known = tree in {known.name for known in folders[folder].trees} and bool(below) and ".." not in below
            case _:
                known = False
        if not known or str(path) != name:
            raise self._refused(f"it has a file of a name that does not belong: {name}")

    def _extract(self, member: tarfile.TarInfo, file: _File) -> None:
        if not member.isreg():
            raise self._refused(f"{member.name} is not a regular file")
        if member.size != file.size:
            raise self._refused(f"{member.name} has {member.size} bytes, {file.size} were expected")
        target = self._work / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        content = self._content(member)
        with target.open("wb") as output:
            while chunk := content.read(_CHUNK):
                digest.update(chunk)
                output.write(chunk)
        if digest.hexdigest() != file.sha256:
            raise self._refused(f"{member.name} does not have the hash that the manifest states")

    def _content(self, member: tarfile.TarInfo) -> IO[bytes]:
        content = self._tar.extractfile(member)
        if content is None:
            raise self._refused(f"{member.name} is not a regular file")
        return content

    def _install(self, manifest: _Manifest) -> None:
        for name in manifest.modules:
            module = self._modules[name]
            staged, home = self._work / module.cache_name, self._cache.home(module)
            home.mkdir(parents=True, exist_ok=True)
            for tree in module.trees:
                source, target = staged / "share" / tree.name, self._cache.tree(module, tree)
                if source.is_dir() and not target.is_dir():
                    target.parent.mkdir(exist_ok=True)
                    source.rename(target)
            for binary in module.binaries:
                if (staged / binary.name).exists():
                    (staged / binary.name).chmod(0o755)
                    (staged / binary.name).replace(home / binary.name)

    def _refused(self, reason: str) -> ArchiveError:
        return ArchiveError(self._path, reason)


def _difference(packed: _Contents, wanted: _Contents) -> str:
    other = [
        f"{name} {packed.versions.get(name, 'none')} instead of {wanted.versions.get(name, 'none')}"
        for name in sorted(packed.versions.keys() | wanted.versions.keys())
        if packed.versions.get(name) != wanted.versions.get(name)
    ]
    return ", ".join(other) or "the same versions, but other dependencies or build settings"


@contextmanager
def _damage_refused(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError) as error:
        raise ArchiveError(path, f"it is damaged or no archive ({error})") from error
