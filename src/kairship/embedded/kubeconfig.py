"""The kubeconfig that `up` writes for people, with one context per control plane."""

from collections.abc import Mapping
from typing import Any

import yaml

from kairship.kube import Connection


def render_kubeconfig(connections: Mapping[str, Connection]) -> bytes:
    """Merge the connections under their names; the first is the current context."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": next(iter(connections))}
    for name, connection in connections.items():
        document = yaml.load(connection.to_kubeconfig(name=name, user=name), yaml.CSafeLoader)
        for section in ("clusters", "users", "contexts"):
            merged.setdefault(section, []).extend(document[section])
    return yaml.safe_dump(merged, sort_keys=False).encode()
