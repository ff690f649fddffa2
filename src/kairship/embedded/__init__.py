"""The embedded plane: everything that `kairship up` runs on one machine, and nothing that production needs.

``home`` is the data directory, ``plane`` brings the whole thing up, ``clusters`` and ``members`` are the Kubernetes
clusters beside the instance, ``demo`` what a newcomer finds in them, ``doctor`` looks at the machine below. All
processes belong to the supervisor; this package decides what exists and asks for it.
"""

from kairship.embedded.doctor import Finding, Verdict, examine
from kairship.embedded.home import Home, HomeBusy, HomeError, NoPlane, default_home
from kairship.embedded.members import Member, MemberError, Members, MemberSpec, MemberState, member_names
from kairship.embedded.nodes import NodeGroup
from kairship.embedded.plane import EmbeddedPlane, Outcome, stop_plane
from kairship.embedded.report import Reporter

__all__ = [
    "EmbeddedPlane",
    "Finding",
    "Home",
    "HomeBusy",
    "HomeError",
    "Member",
    "MemberError",
    "MemberSpec",
    "MemberState",
    "Members",
    "NoPlane",
    "NodeGroup",
    "Outcome",
    "Reporter",
    "Verdict",
    "default_home",
    "examine",
    "member_names",
    "stop_plane",
]
