"""The resource statistics controller: what every instance holds, in numbers.

`tally` counts the objects of a kind from their changes, `readiness` says when a workload counts as ready, `summing`
adds up clusters (pure functions), `picture` follows one instance with the account of its collector, `reconciler` writes
the sums down when they have changed.
"""

from kairship.controllers.statistics.picture import Pictures
from kairship.controllers.statistics.reconciler import NAME, statistics_controller

__all__ = ["NAME", "Pictures", "statistics_controller"]
