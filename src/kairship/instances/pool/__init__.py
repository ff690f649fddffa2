"""A client for every instance and every registered cluster, by name.

`pool` creates, replaces and closes clients; `target` keeps one client in step with its Secret; `sources` selects the
custom resources and Secrets that say what to connect to; `health` is what users of the pool learn about a target, and
`metrics` what it counts.
"""

from kairship.instances.pool.health import Health, NotConnected, Reason, TargetKind
from kairship.instances.pool.metrics import PoolMetrics
from kairship.instances.pool.pool import Listener, Pool
from kairship.instances.pool.target import PoolSettings

__all__ = ["Health", "Listener", "NotConnected", "Pool", "PoolMetrics", "PoolSettings", "Reason", "TargetKind"]
