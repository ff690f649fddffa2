"""Reads the tables of global management from its database file."""

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Tables:
    resources: dict[str, str]
    """The UIDs of registered instances, by name."""
    bindings: set[tuple[str, str, str, str]]
    """The bindings on instances: subject, role, namespace, UID."""
    held: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """The resources of each workspace: UID of the instance, and namespace."""

    @classmethod
    def read(cls, path: Path) -> "Tables":
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)) as connection:
            resources = dict(connection.execute("SELECT name, uid FROM resources"))
            bindings = set(
                connection.execute(
                    "SELECT subject_id, role_id, namespace, target_id FROM bindings WHERE target_kind = 'Resource'"
                )
            )
            held: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
            for workspace, uid, namespace in connection.execute(
                "SELECT workspace_id, instance_uid, namespace FROM workspace_resources"
            ):
                held[str(workspace)].add((uid, namespace))
        return cls(resources, bindings, held)
