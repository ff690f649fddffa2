"""Records of members: invalid names and quantities, duplicate names, and damaged files."""

from pathlib import Path

import msgspec
import pytest

from kairship.embedded import MemberError, Members, MemberSpec, MemberState, NodeGroup, demo, member_names
from kairship.engine import Engine
from kairship.supervisor import SupervisorClient

NODES = NodeGroup(zone="here-a", count=1, cpu="8", memory="32Gi")
SPEC = MemberSpec(name="oslo", provider="kwok", region="local", nodes=(NODES,))


@pytest.fixture
def members(tmp_path: Path, engine: Engine) -> Members:
    supervisor = SupervisorClient(tmp_path)
    return Members(tmp_path / "planes", logs=tmp_path / "logs", engine=engine, supervisor=supervisor)


@pytest.mark.parametrize("spec", demo.MEMBERS, ids=lambda spec: spec.name)
def test_the_demo_is_valid(spec: MemberSpec) -> None:
    assert spec.problem() is None


@pytest.mark.parametrize("name", ["a", "a-1", "9", "x" * 48])
def test_names_that_can_be(name: str) -> None:
    assert msgspec.structs.replace(SPEC, name=name).problem() is None


@pytest.mark.parametrize("name", ["", "Oslo", "-a", "a-", "a.b", "a/b", "../a", "k-a", "x" * 49, "demo", "global", "ø"])
def test_names_that_cannot_be(name: str, members: Members) -> None:
    with pytest.raises(MemberError):
        members.register(msgspec.structs.replace(SPEC, name=name))
    assert members.specs() == []


@pytest.mark.parametrize("amount", ["", "a8", "-1", "8 Gi", "8GB", "1e", "١"])
def test_amounts_that_cannot_be(amount: str) -> None:
    for field in ("cpu", "memory"):
        group = msgspec.structs.replace(NODES, **{field: amount})
        problem = msgspec.structs.replace(SPEC, nodes=(group,)).problem()
        assert problem is not None
        assert repr(amount) in problem


@pytest.mark.parametrize("amount", ["8", "0.5", "500m", "32Gi", "1Ti", "64M", "128Ki"])
def test_amounts_that_can_be(amount: str) -> None:
    group = msgspec.structs.replace(NODES, cpu=amount, memory=amount)
    assert msgspec.structs.replace(SPEC, nodes=(group,)).problem() is None


@pytest.mark.parametrize("field", ["provider", "region"])
@pytest.mark.parametrize("word", ["", "a b", "x" * 64, "-a"])
def test_places_that_cannot_be(field: str, word: str) -> None:
    assert msgspec.structs.replace(SPEC, **{field: word}).problem() is not None


async def test_a_name_is_given_once(members: Members) -> None:
    members.register(SPEC)
    with pytest.raises(MemberError, match="already"):
        members.register(SPEC)
    assert members.specs() == [SPEC]
    (member,) = await members.overview()
    assert (member.spec, member.state) == (SPEC, MemberState.DOWN)


def test_a_damaged_record_is_named(members: Members, tmp_path: Path) -> None:
    members.register(SPEC)
    (path,) = tmp_path.glob("planes/*/member.json")
    path.write_text("{")
    with pytest.raises(MemberError, match=str(path)):
        members.specs()
    assert list(member_names(tmp_path / "planes")) == []


def test_what_is_being_deleted_is_no_member(members: Members, tmp_path: Path) -> None:
    members.register(SPEC)
    (directory,) = (tmp_path / "planes").iterdir()
    directory.rename(directory.with_name(f".deleting-{directory.name}"))
    assert members.specs() == []
    assert list(member_names(tmp_path / "planes")) == []
    members.register(SPEC)
    assert members.specs() == [SPEC]


def test_processes_of_members(members: Members) -> None:
    members.register(SPEC)
    assert members.owns("member-oslo/etcd")
    assert not members.owns("member-oslo-2/etcd")
    assert not members.owns("global/etcd")
