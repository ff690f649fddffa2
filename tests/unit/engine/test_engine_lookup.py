"""Binaries and manifests are found in the cache, or in a folder of the user after a check of their versions.

The folder's binaries are scripts that only print a version, because only the check is tested.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from unit.engine.workshop import Workshop

from kairship.engine import Engine, Group
from kairship.engine.cache import Cache
from kairship.engine.catalogue import KARMADA_SERVERS
from kairship.engine.errors import NotBuiltError, UnknownBinaryError, WrongVersionError
from kairship.engine.pins import Catalogue

CATALOGUE = Catalogue.load()
CURRENT = CATALOGUE.find("karmada-scheduler").version
PREVIOUS = next(module for module in CATALOGUE.modules if module.name == "karmada-previous").binaries[0].version

Script = Callable[[Path, str], Path]


def _says(version: str) -> str:
    return f"#!/bin/sh\necho 'Client Version: {version}'\necho 'Other Version: v9.9.9'\n"


async def _find(cache: Path, folder: Path | None = None) -> Engine:
    environ = {"KAIRSHIP_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin"}
    return await Engine.find(environ=environ | ({"KAIRSHIP_ENGINE_DIR": str(folder)} if folder else {}))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KAIRSHIP_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/kairship")),
        ({}, Path.home() / ".cache" / "kairship"),
    ],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], expected: Path) -> None:
    assert Cache.default(environ).root == expected


@pytest.mark.parametrize("brought", [False, True])
async def test_another_process_finds_the_same(tmp_path: Path, brought: bool) -> None:
    (folder := tmp_path / "brought").mkdir()
    engine = await _find(tmp_path / "cache", folder if brought else None)
    assert await Engine.find(environ=engine.environment) == engine


async def test_what_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    engine = await _find(tmp_path)
    with pytest.raises(NotBuiltError, match=r"etcd v3\S+ is not there .*kairship engine build --group plane"):
        engine.binary("etcd")
    with pytest.raises(NotBuiltError, match="kairship engine build --group test"):
        engine.binary("karmada-scheduler", PREVIOUS)
    with pytest.raises(NotBuiltError, match="kairship engine build --group manifests"):
        engine.kwok_stages()
    with pytest.raises(UnknownBinaryError, match="no such-thing"):
        engine.binary("such-thing")
    assert engine.karmada_versions() == []
    assert {status.size for status in engine.components()} == {None}


async def test_the_cache_is_found_and_listed(workshop: Workshop) -> None:
    built = workshop.cache.binary(workshop.catalogue.find("fast"))
    built.parent.mkdir(parents=True)
    built.write_bytes(b"12345")
    engine = await Engine.find(catalogue=workshop.catalogue, cache=workshop.cache, environ={})
    assert engine.binary("fast") == built
    listed = [(status.name, status.version, status.group, status.size) for status in engine.components()]
    assert listed == [
        ("fast", "v1.2.3", Group.PLANE, 5),
        ("slow", "v1.2.3", Group.PLANE, None),
        ("extra", "v1.2.3", Group.TEST, None),
    ]


async def test_a_folder_of_binaries_is_used_instead_of_the_cache(tmp_path: Path, script: Script) -> None:
    folder = tmp_path / "mine"
    for binary in CATALOGUE.binaries:
        if binary.group is Group.PLANE:
            script(folder / binary.name, _says(binary.version))
    # A release of upstream has build metadata; etcd leaves out the v.
    script(folder / "helm", _says(CATALOGUE.find("helm").version + "+g9fe2a6a"))
    script(folder / "etcd", _says(CATALOGUE.find("etcd").version.removeprefix("v")))
    engine = await _find(tmp_path / "cache", folder)
    assert engine.binary("kube-apiserver") == folder / "kube-apiserver"
    assert engine.karmada_versions() == [CURRENT]
    for server in KARMADA_SERVERS:
        script(folder / PREVIOUS / server, _says(PREVIOUS))
    engine = await _find(tmp_path / "cache", folder)
    assert engine.karmada_versions() == [CURRENT, PREVIOUS]
    assert engine.binary("karmada-webhook", PREVIOUS) == folder / PREVIOUS / "karmada-webhook"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (_says("v1.2.3"), "v1.2.3"),
        (_says(f"{CATALOGUE.find('kubectl').version}-rc.1"), f"{CATALOGUE.find('kubectl').version}-rc.1"),
        ("#!/bin/sh\necho nothing to see\n", "of no recognisable version"),
        ("#!/no/such/interpreter\n", "not runnable"),
    ],
    ids=["other version", "pre-release", "no version", "not runnable"],
)
async def test_a_wrong_binary_is_named_with_both_versions(
    tmp_path: Path, script: Script, text: str, found: str
) -> None:
    path = script(tmp_path / "mine" / "kubectl", text)
    with pytest.raises(WrongVersionError) as raised:
        await _find(tmp_path / "cache", path.parent)
    assert raised.value.binary == "kubectl"
    assert raised.value.found.startswith(found)
    assert raised.value.wanted == CATALOGUE.find("kubectl").version
    assert str(path) in str(raised.value)


async def test_manifests_come_from_the_folder_or_else_from_the_cache(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "share" / "karmada-crds").mkdir(parents=True)
    engine = await _find(tmp_path / "cache", folder)
    for module in CATALOGUE.modules:
        for tree in module.trees:
            engine.cache.tree(module, tree).mkdir(parents=True)
    assert engine.karmada_crds() == folder / "share" / "karmada-crds"
    previous = CATALOGUE.find("karmada-scheduler", PREVIOUS).pinned
    assert engine.karmada_crds(PREVIOUS) == engine.cache.home(previous) / "share" / "karmada-crds"
    assert engine.karmada_manifests().name == "karmada-manifests"
    assert engine.kwok_stages().name == "kwok-stages"
