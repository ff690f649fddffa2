"""Compares the authoriser with a model over random binds, unbinds, group changes and recreated instances.

The model is a plain list that is searched from the beginning each time: it is slow and obviously right.
"""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from support.bindings import bind, on

from kairship.access import Authoriser, Caller, Decision, Freshness, GrantIndex, KnownInstances
from kairship.reconcile import SystemClock

USERS, GROUPS = ("ann", "bob"), ("devs", "ops")
INSTANCES, NAMESPACES = ("east", "west"), ("shop", "bank")
PERMISSIONS = ("kairship.deployments.get", "kairship.deployments.create", "kairship.instances.get")


@dataclass
class Granted:
    subject: str
    permissions: frozenset[str]
    uid: str | None
    namespace: str | None
    revoked: bool = False


@dataclass
class Model:
    bindings: dict[str, Granted] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=lambda: {user: set() for user in USERS})
    uids: dict[str, str] = field(default_factory=dict)

    def allows(self, user: str, permission: str, instance: str, namespace: str | None) -> bool:
        subjects = {user, *(f"%{group}" for group in self.groups[user])}
        uid = self.uids.get(instance)
        return any(
            not granted.revoked
            and granted.subject in subjects
            and permission in granted.permissions
            and (granted.uid is None or (uid is not None and granted.uid == uid))
            and (granted.namespace is None or granted.namespace == namespace)
            for granted in self.bindings.values()
        )


class BindingsAndQuestions(RuleBasedStateMachine):
    names = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(uids={name: f"uid-{name}" for name in INSTANCES})
        self.grants = GrantIndex()
        self.instances = KnownInstances(self.model.uids)
        freshness = Freshness(SystemClock())
        freshness.mark_connected()
        self.authoriser = Authoriser(self.grants, self.instances, freshness)
        self.made = 0

    @rule(
        target=names,
        subject=st.sampled_from([*USERS, *(f"%{group}" for group in GROUPS)]),
        permissions=st.sets(st.sampled_from(PERMISSIONS)),
        instance=st.sampled_from([None, *INSTANCES]),
        namespace=st.sampled_from([None, *NAMESPACES]),
    )
    def bind(self, subject: str, permissions: set[str], instance: str | None, namespace: str | None) -> str:
        self.made += 1
        name = f"binding-{self.made}"
        namespace = namespace if instance else None
        self.grants.put(bind(subject, permissions, on(instance, namespace), name=name))
        uid = f"uid-{instance}" if instance else None
        self.model.bindings[name] = Granted(subject, frozenset(permissions), uid, namespace)
        return name

    @rule(name=names, permissions=st.sets(st.sampled_from(PERMISSIONS)), revoked=st.booleans())
    def change(self, name: str, permissions: set[str], revoked: bool) -> None:
        granted = self.model.bindings.get(name)
        if granted is None:
            return
        granted.permissions, granted.revoked = frozenset(permissions), revoked
        instance = granted.uid.removeprefix("uid-") if granted.uid else None
        scope = on(instance, granted.namespace)
        self.grants.put(bind(granted.subject, permissions, scope, name=name, revoked=revoked))

    @rule(name=consumes(names))
    def unbind(self, name: str) -> None:
        self.grants.remove(name)
        self.model.bindings.pop(name, None)

    @rule(user=st.sampled_from(USERS), group=st.sampled_from(GROUPS))
    def join_or_leave(self, user: str, group: str) -> None:
        self.model.groups[user] ^= {group}

    @rule(instance=st.sampled_from(INSTANCES), uid=st.sampled_from(["uid-east", "uid-west", "uid-new", None]))
    def recreate(self, instance: str, uid: str | None) -> None:
        if uid in self.model.uids.values():
            return  # no two objects have the same UID
        self.model.uids.pop(instance, None)
        self.instances.remove(instance)
        if uid is not None:
            self.model.uids[instance] = uid
            self.instances.put(instance, uid)

    @invariant()
    def they_agree(self) -> None:
        for user in USERS:
            caller = Caller(user, self.model.groups[user])
            for permission in PERMISSIONS:
                coverage = self.authoriser.coverage(caller, permission)
                for instance in INSTANCES:
                    for namespace in (None, *NAMESPACES):
                        expected = self.model.allows(user, permission, instance, namespace)
                        decision = self.authoriser.on_instance(caller, permission, instance, namespace)
                        assert (decision is Decision.ALLOWED) == expected
                        explained = self.authoriser.explain(caller, permission, instance=instance, namespace=namespace)
                        assert bool(explained.bindings) == expected
                        if namespace is not None and instance in self.model.uids:
                            assert coverage.includes(instance, namespace) == expected


TestBindingsAndQuestions = BindingsAndQuestions.TestCase
TestBindingsAndQuestions.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
