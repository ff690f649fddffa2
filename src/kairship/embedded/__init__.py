"""The embedded plane: everything that `kairship up` runs on one machine, and nothing that production needs.

``home`` is the data directory, ``plane`` brings the whole thing up, ``global_cluster`` and ``members`` are the
Kubernetes clusters beside the instance, ``demo`` what a newcomer finds in them. All processes belong to the
supervisor; this package decides what exists and asks for it.
"""

from kairship.embedded.doctor import Finding, Verdict, examine
from kairship.embedded.home import Home, HomeBusy, HomeError, default_home
from kairship.embedded.members import MemberError, Members, MemberSpec, NodeGroup
from kairship.embedded.plane import EmbeddedPlane, Outcome, stop_plane
from kairship.embedded.report import Reporter

__all__ = [
    "EmbeddedPlane",
    "Finding",
    "Home",
    "HomeBusy",
    "HomeError",
    "MemberError",
    "MemberSpec",
    "Members",
    "NodeGroup",
    "Outcome",
    "Reporter",
    "Verdict",
    "default_home",
    "examine",
    "stop_plane",
]
