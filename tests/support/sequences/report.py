"""What came of a run, for people: docs/soak.md. What was found and mended is written by hand below the figures."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from support.sequences.running import Run

MARK = "<!-- figures above are written by `make soak`, what follows by people -->"
_HEAD = """# Random sequences

A sequence plays what people do and what breaks, in random order, on a whole embedded plane: all processes of Kairship,
real Karmada instances and real member clusters. Its seed decides its steps: create, import, join, bind, edit, rotate,
stop a member, kill -9, unjoin, delete, all through the public API. A model says what must come of them. After the last
step, and again after everything was taken back, these must hold exactly what the model says, twice in a row: the custom
resources and Secrets of the global cluster; clusters, tokens, RBAC, Works and workloads in the instance; accounts,
roles, RBAC and workloads in the members; the files of the index; the tables of global management; data and processes of
instances; and what two users reach through the entrance, in the instance and in its members. The whole plane is also
searched for orphans. Several sequences run at the same time, and a kill hits them all.

`make soak` plays them; `python -m support.sequences --seed 7` (with `PYTHONPATH=tests`) plays one again.
"""


def write(path: Path, run: Run) -> None:
    kept = path.read_text().partition(MARK)[2] if path.exists() else "\n"
    path.write_text(f"{_HEAD}\n{_figures(run)}\n{MARK}{kept}")


def _figures(run: Run) -> str:
    played = run.played
    steps = Counter(kind for each in played for kind, _ in each.steps)
    kills = Counter(victim for each in played for victim in each.kills)
    settled = [each.settled for each in played if not each.failure]
    cleared = [each.cleared for each in played if not each.failure]
    seeds, minutes = _span(sorted(each.seed for each in played)), run.seconds / 60
    total = f"{sum(steps.values())} steps, in {minutes:.0f} minutes; {len(run.failures)} failed"
    lines = [
        f"- {len(played)} sequences (seeds {seeds}), {total}",
        f"- steps: {_counted(steps)}",
        f"- killed: {_counted(kills)}",
        f"- from the last step until everything was as it should be: {_spread(settled)}",
        f"- the same after everything was taken back: {_spread(cleared)}",
        *(f"- seed {each.seed} failed: {each.failure[:300]}" for each in run.failures),
    ]
    return "\n".join(lines) + "\n"


def _span(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if seeds else "none"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _spread(values: Iterable[float]) -> str:
    values = sorted(values)
    if len(values) < 2:
        return "too few to tell"
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return f"p50 {cuts[49]:.1f} s, p99 {cuts[98]:.1f} s, at most {values[-1]:.1f} s"
