"""The resource statistics controller: counts what every instance holds.

`kind_counter` counts the objects of one kind from their changes, `readiness` says when a workload counts as ready, and
`cluster_sums` adds up the members; the latter two are pure functions. `instance_counter` runs the counters of one
instance with the account of its collector, and `reconciler` writes the numbers when they have changed.
"""

from kairship.controllers.statistics.instance_counter import InstanceCounters
from kairship.controllers.statistics.reconciler import statistics_controller

__all__ = ["InstanceCounters", "statistics_controller"]
