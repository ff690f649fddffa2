"""Measures a decision of the authoriser with 10 to 50,000 bindings, the memory of the bindings, and sign-ins.

    python benchmarks/authz.py

Target: a decision in at most 5 µs at 5,000 bindings, for a caller in ten groups.
"""

import asyncio
import gc
import itertools
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import report

from kairship.access import Authoriser, Binding, Caller, Freshness, GrantIndex, KnownInstances, Role, permissions_of
from kairship.access.bindings import BindingSpec
from kairship.ghippo.audit import AuditLog
from kairship.ghippo.database import Database
from kairship.ghippo.identity.first_run import create_admin
from kairship.ghippo.identity.passwords import Passwords
from kairship.ghippo.identity.sign_in import Origin as From
from kairship.ghippo.identity.sign_in import SignIn
from kairship.ghippo.sealing import Sealer
from kairship.reconcile import Metadata, SystemClock
from kairship.resources import ScopeLevel, SubjectKind
from kairship.resources.access_binding import Origin, OriginKind, Scope, Subject
from kairship.resources.access_binding import Role as RoleField

SIZES = (10, 1_000, 5_000, 50_000)
INSTANCES = 100
GROUPS_OF_CALLER = 10
ROUNDS = 50_000
SIGN_INS, AT_ONCE = 40, 4
PASSWORD = "correct horse battery staple"  # noqa: S105 - of a database that lives for seconds


def binding(number: int, random_: random.Random) -> Binding:
    role = random_.choice([Role.VIEWER, Role.EDITOR, Role.ADMIN])
    instance = f"i{random_.randrange(INSTANCES)}"
    level = random_.choice([ScopeLevel.INSTANCE, ScopeLevel.NAMESPACE])
    namespace = f"n{random_.randrange(50)}" if level is ScopeLevel.NAMESPACE else None
    kind = random_.choice([SubjectKind.USER, SubjectKind.GROUP])
    return Binding(
        metadata=Metadata(name=f"b{number}"),
        spec=BindingSpec(
            subject=Subject(kind=kind, id=f"s{random_.randrange(max(1, number // 5 + 1))}"),
            role=RoleField(id=role.id),
            scope=Scope(level=level, instance=instance, instance_uid=f"uid-{instance}", namespace=namespace),
            origin=Origin(kind=OriginKind.WORKSPACE, id="7"),
            sequence=number + 1,
            permissions=permissions_of(role),
        ),
    )


def microseconds(question: Callable[[int], object]) -> tuple[float, float]:
    """Median and 99th percentile. Calls are timed in batches, because reading the clock costs nearly as much as one."""
    batch, figures = 50, []
    for start in range(0, ROUNDS, batch):
        begin = time.perf_counter_ns()
        for number in range(start, start + batch):
            question(number)
        figures.append((time.perf_counter_ns() - begin) / batch / 1000)
    figures.sort()
    return figures[len(figures) // 2], figures[int(len(figures) * 0.99)]


def measure(size: int) -> dict[str, float]:
    random_ = random.Random(size)  # noqa: S311 - the same figures each time
    clock = SystemClock()
    freshness = Freshness(clock)
    freshness.mark_connected()
    instances = KnownInstances({f"i{number}": f"uid-i{number}" for number in range(INSTANCES)})
    tracemalloc.start()
    grants = GrantIndex()
    for number in range(size):
        grants.put(binding(number, random_))
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    authoriser = Authoriser(grants, instances, freshness)
    people = max(2, size // 5)
    callers = [
        Caller(f"s{random_.randrange(people)}", [f"s{random_.randrange(people)}" for _ in range(GROUPS_OF_CALLER)])
        for _ in range(200)
    ]
    questions = [
        (random_.choice(callers), f"i{random_.randrange(INSTANCES)}", f"n{random_.randrange(50)}") for _ in range(5000)
    ]

    def decide(number: int) -> object:
        caller, instance, namespace = questions[number % len(questions)]
        return authoriser.on_instance(caller, "kairship.deployments.create", instance, namespace)

    def reach(number: int) -> object:
        return authoriser.coverage(callers[number % len(callers)], "kairship.deployments.get")

    fresh = [binding(size + number, random_) for number in range(1000)]
    begin = time.perf_counter_ns()
    for each in fresh:
        grants.put(each)
    for each in fresh:
        grants.remove(each.name)
    change = (time.perf_counter_ns() - begin) / (2 * len(fresh)) / 1000
    p50, p99 = microseconds(decide)
    reach_p50, reach_p99 = microseconds(reach)
    return {
        "decision_p50_us": round(p50, 2),
        "decision_p99_us": round(p99, 2),
        "reach_p50_us": round(reach_p50, 2),
        "reach_p99_us": round(reach_p99, 2),
        "change_us": round(change, 2),
        "memory_mib": round(memory / 1024**2, 1),
    }


async def sign_ins_per_second() -> float:
    """Signs in with the real cost of argon2, which is slow on purpose."""
    with tempfile.TemporaryDirectory(prefix="kairship-bench-") as directory:
        database = Database(f"sqlite:///{directory}/ghippo.db")
        passwords, sealer = Passwords(), Sealer(Sealer.generate_key())
        await database.open()
        (Path(directory) / "password").write_text(PASSWORD)
        await create_admin(database, passwords, password=Path(directory) / "password")
        sign_in = SignIn(database, passwords, sealer, AuditLog(sealer))
        begin = time.perf_counter()
        for _ in range(SIGN_INS // AT_ONCE):
            await asyncio.gather(*(sign_in.with_password("admin", PASSWORD, From()) for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - begin
        await database.close()
        passwords.close()
    return SIGN_INS / seconds


if __name__ == "__main__":
    figures = {size: measure(size) for size in SIZES}
    columns = ["bindings", *next(iter(figures.values()))]
    report.table(
        "decisions of the authoriser (target: 5 µs at 5,000)",
        columns,
        [[f"{size:,}", *(f"{value:g}" for value in row.values())] for size, row in figures.items()],
    )
    smallest, largest = itertools.islice(figures.values(), 1), figures[SIZES[-1]]
    ratio = largest["decision_p50_us"] / next(smallest)["decision_p50_us"]
    sign_ins = asyncio.run(sign_ins_per_second())
    report.table("sign-ins", ["", "per second"], [[f"{AT_ONCE} at once, two threads", f"{sign_ins:.1f}"]])
    report.write(
        "authz",
        figures={"bindings": {str(size): row for size, row in figures.items()}, "sign_ins_per_second": sign_ins},
        ratios={"decision_at_50000_against_10": round(ratio, 2)},
    )
