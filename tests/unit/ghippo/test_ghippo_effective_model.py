"""Compares effective bindings with a model over random folders, workspaces, resources, bindings and roles.

The model keeps the tree as plain dictionaries and computes everything from the beginning each time. A receiver follows
the rows by their sequence alone, as a webhook does, and must end up with the same bindings.
"""

import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kairship.ghippo.database.schema import effective_bindings, metadata
from kairship.ghippo.errors import GhippoError
from kairship.ghippo.identity import users
from kairship.ghippo.tenancy import bindings, effective, folders, registered_instances, roles, workspaces
from kairship.ghippo.tenancy.bindings import Target
from kairship.resources import AccessBindingSpec

AT = 1_800_000_000
INSTANCES = ("east", "west")
numbers = st.integers(min_value=0, max_value=9)


class Tree(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.engine = sa.create_engine("sqlite://")
        self.connection = self.engine.connect()
        metadata.create_all(self.connection)
        self.user = users.create(self.connection, name="ann", at=AT)
        roles.create(self.connection, "own", display_name="", description="", granted=["kairship.pods.get"])
        self.role = {"own": ("kairship.pods.get",)}
        self.uids: dict[str, str] = {}
        self.folders: dict[int, int | None] = {}
        self.workspaces: dict[int, int | None] = {}
        self.held: dict[str, tuple[int, str, str]] = {}
        self.bound: dict[str, tuple[str, Target]] = {}
        self.cursor, self.received = 0, dict[str, AccessBindingSpec]()
        self.made = 0
        for name in INSTANCES:
            self.register(name, False)

    def teardown(self) -> None:
        self.connection.close()
        self.engine.dispose()

    def fresh(self) -> str:
        self.made += 1
        return f"x{self.made}"

    def pick(self, items: dict[int, int | None], number: int) -> int | None:
        return sorted(items)[number % len(items)] if items else None

    @rule(name=st.sampled_from(INSTANCES), anew=st.booleans())
    def register(self, name: str, anew: bool) -> None:
        uid = self.fresh() if anew or name not in self.uids else self.uids[name]
        registered_instances.register(self.connection, name=name, uid=uid, at=AT)
        old = self.uids.get(name)
        if old is not None and old != uid:
            self.held = {key: held for key, held in self.held.items() if held[1] != old}
            self.bound = {key: bound for key, bound in self.bound.items() if bound[1].id != old}
        self.uids[name] = uid

    @rule(parent=numbers)
    def make_folder(self, parent: int) -> None:
        above = self.pick(self.folders, parent) if parent else None
        self.folders[folders.create(self.connection, name="f", parent=above)] = above

    @precondition(lambda self: self.folders)
    @rule(number=numbers, parent=numbers)
    def move_folder(self, number: int, parent: int) -> None:
        folder, above = self.pick(self.folders, number), self.pick(self.folders, parent) if parent else None
        assert folder is not None
        try:
            folders.update(self.connection, folder, name="f", parent=above, at=AT)
        except GhippoError:
            assert above is not None
            assert folder in self.ancestors(above)
        else:
            self.folders[folder] = above

    @rule(parent=numbers)
    def make_workspace(self, parent: int) -> None:
        above = self.pick(self.folders, parent) if parent else None
        made = workspaces.create(self.connection, name=self.fresh(), alias="", folder=above, at=AT)
        self.workspaces[made] = above

    @precondition(lambda self: self.workspaces)
    @rule(number=numbers, parent=numbers)
    def move_workspace(self, number: int, parent: int) -> None:
        workspace, above = self.pick(self.workspaces, number), self.pick(self.folders, parent) if parent else None
        assert workspace is not None
        workspaces.move(self.connection, workspace, folder=above, at=AT)
        self.workspaces[workspace] = above

    @precondition(lambda self: self.workspaces)
    @rule(number=numbers, name=st.sampled_from(INSTANCES), namespace=st.sampled_from(["", "web"]))
    def add_or_remove_resource(self, number: int, name: str, namespace: str) -> None:
        found = [key for key, held in self.held.items() if held[1:] == (self.uids[name], namespace)]
        if found:
            workspaces.remove(self.connection, self.held[found[0]][0], found[0], at=AT)
            del self.held[found[0]]
            return
        workspace = self.pick(self.workspaces, number)
        assert workspace is not None
        made = workspaces.add(self.connection, workspace, instance=name, namespace=namespace, at=AT)
        self.held[made] = (workspace, self.uids[name], namespace)

    @rule(kind=st.sampled_from(["Platform", "Folder", "Workspace", "Resource"]), number=numbers)
    def bind_or_unbind(self, kind: str, number: int) -> None:
        target = self.target(kind, number)
        if target is None:
            return
        role = ("viewer", "own")[number % 2]
        found = [key for key, bound in self.bound.items() if bound == (role, target)]
        if found:
            bindings.delete(self.connection, found[0], at=AT)
            del self.bound[found[0]]
        else:
            made = bindings.create(
                self.connection, subject_kind="User", subject_id=self.user, role=role, target=target, at=AT
            )
            self.bound[made] = (role, target)

    @rule(permission=st.sampled_from(["kairship.pods.get", "kairship.pods.delete"]))
    def change_role(self, permission: str) -> None:
        roles.update(self.connection, "own", display_name="", description="", granted=[permission], at=AT)
        self.role["own"] = (permission,)

    def target(self, kind: str, number: int) -> Target | None:
        match kind:
            case "Folder":
                found = self.pick(self.folders, number)
                return None if found is None else Target(kind="Folder", id=str(found))
            case "Workspace":
                found = self.pick(self.workspaces, number)
                return None if found is None else Target(kind="Workspace", id=str(found))
            case "Resource":
                namespace = "web" if number % 3 else ""
                return Target(kind="Resource", id=self.uids[INSTANCES[number % 2]], namespace=namespace)
            case _:
                return Target(kind="Platform")

    def ancestors(self, folder: int | None) -> set[int]:
        found = set()
        while folder is not None:
            found.add(folder)
            folder = self.folders[folder]
        return found

    def expected(self) -> set[tuple[str, str, str]]:
        result = set()
        for key, (role, target) in self.bound.items():
            match target.kind:
                case "Platform":
                    result.add((key, role, "everything"))
                    continue
                case "Resource":
                    result.add((key, role, f"{target.id}/{target.namespace}"))
                    continue
                case "Workspace":
                    concerned = {int(target.id)}
                case "Folder":
                    within = {each for each in self.folders if int(target.id) in self.ancestors(each)}
                    concerned = {each for each, folder in self.workspaces.items() if folder in within}
            result |= {(key, role, f"#{each}") for each in concerned}
            result |= {(key, role, f"{uid}/{name}") for each, uid, name in self.held.values() if each in concerned}
        return result

    @invariant()
    def receivers_are_told_exactly_that(self) -> None:
        news = sa.select(effective_bindings).where(effective_bindings.c.sequence > self.cursor)
        for row in self.connection.execute(news.order_by(effective_bindings.c.sequence)):
            self.received[row.name] = effective.spec_of(row)
            self.cursor = row.sequence
        told = set()
        for name, spec in self.received.items():
            if spec.revoked:
                continue
            scope = spec.scope
            place = f"#{scope.workspace}" if scope.workspace else f"{scope.instance_uid}/{scope.namespace or ''}"
            everything = scope.level.value == "Platform"
            told.add((name.rpartition("-")[0], spec.role.id, "everything" if everything else place))
            if spec.role.id == "own":
                assert spec.permissions == self.role["own"]
        assert told == self.expected()


TestTree = Tree.TestCase
TestTree.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
