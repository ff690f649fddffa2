"""The embedded plane: everything that `kairship up` runs on one machine. Production uses nothing of this package.

All processes belong to the supervisor; this package decides which processes exist.

    home                        the data directory
    plane                       starts, repairs and stops the whole plane
    supervision                 starts and stops the supervisor itself
    plane_processes             the plane's own processes, their kubeconfigs and their RBAC
    entrance, backends          the apiserver; what ghippo and kpanda have in common
    global_management           ghippo
    container_management        kpanda
    token_keeper                renews the ServiceAccount tokens of these processes
    clusters, members, nodes    the global cluster and the member clusters, whose nodes are simulated by kwok
    demo, demo_instance         what a new plane contains
    membership                  joins member clusters to the demo instance
    kubeconfig                  the kubeconfig that `up` writes for people
    doctor                      checks of the machine and of the plane
    reporter                    how progress is reported
"""

from kairship.embedded.doctor import CheckResult, Verdict, run_checks
from kairship.embedded.home import Home, HomeBusy, HomeError, NoPlane, default_home
from kairship.embedded.members import Member, MemberError, Members, MemberSpec, MemberState, member_names
from kairship.embedded.nodes import NodeGroup
from kairship.embedded.plane import EmbeddedPlane, Outcome, stop_plane
from kairship.embedded.reporter import Reporter

__all__ = [
    "CheckResult",
    "EmbeddedPlane",
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
    "member_names",
    "run_checks",
    "stop_plane",
]
