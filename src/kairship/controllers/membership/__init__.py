"""The cluster membership controller: clusters of container management join instances, are kept in step, and leave.

`desired` says how Karmada should know a cluster (pure functions). `joining` and `leaving` bring that about by means of
`kairship.instances.membership`, and `membership_status` writes the status. `token_rotation` retires the old tokens of a
member, `stall_detection` notices a Karmada that ignores a member, and `restarts` restarts Karmada's controllers for
both. `estimators` has the kubeconfigs that descheduling needs, and `reconciler` combines them.
"""

from kairship.controllers.membership.estimators import MemberEstimators
from kairship.controllers.membership.reconciler import membership_controller
from kairship.controllers.membership.restarts import RESTARTED

__all__ = ["RESTARTED", "MemberEstimators", "membership_controller"]
