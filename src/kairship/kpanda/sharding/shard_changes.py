"""The source of keys that follows the shard."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kairship.kpanda.sharding.shard import Shard
from kairship.reconcile import Enqueue, HasMetadata, Watch

T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True)
class ShardChanges(Generic[T]):
    """Enqueues the keys of all watched objects when the shard has changed: each may concern this replica now, or no
    longer."""

    shard: Shard
    watch: Watch[T]

    def subscribe(self, enqueue: Enqueue) -> Callable[[], None]:
        def changed() -> None:
            for each in self.watch.reflector.store:
                for key in self.watch.keys(each):
                    enqueue(key)

        return self.shard.subscribe(changed)
