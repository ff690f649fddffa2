"""The cluster membership controller: clusters of container management join instances, follow their changes, and leave.

`wanted` says how Karmada should know a cluster (pure functions), `joining` and `leaving` bring that about by the means
of `kairship.instances.membership`, `report` is the status, `estimators` what descheduling needs of the members,
`rotating` what follows from new credentials, `restarts` those of Karmada's controllers, and `reconciler` puts
them together.
"""

from kairship.controllers.membership.estimators import MemberEstimators
from kairship.controllers.membership.reconciler import NAME, membership_controller, membership_key
from kairship.controllers.membership.restarts import RESTARTED

__all__ = ["NAME", "RESTARTED", "MemberEstimators", "membership_controller", "membership_key"]
