"""Reads run on the event loop, unless the disk was slow a moment ago."""

import threading

import apsw

from kairship.index.sqlite.inline_executor import InlineExecutor
from kairship.process.slow_disk import SlowDisk


class Machine:
    """A clock and a disk whose counters stand still until a read uses them."""

    def __init__(self, *, closely: bool = False) -> None:
        self.now, self.reads = 100.0, 7
        self.inline = InlineExecutor(SlowDisk(lambda: self.reads, closely=closely, clock=lambda: self.now))
        self._db = apsw.Connection(":memory:")

    async def on_loop(self, *, seconds: float = 0.0, reads: int = 0) -> bool:
        """Whether a read that takes so many seconds and so many disk reads ran on the event loop."""

        def work() -> int:
            self.now += seconds
            self.reads += reads
            return threading.get_ident()

        return await self.inline.run(self._db, work) == threading.get_ident()


async def test_a_slow_disk_sends_reads_to_threads_for_a_while() -> None:
    machine = Machine()
    assert await machine.on_loop(seconds=0.5, reads=3)
    assert not await machine.on_loop()
    machine.now += 1.9
    assert not await machine.on_loop()
    machine.now += 0.2
    assert await machine.on_loop()


async def test_a_busy_processor_does_not() -> None:
    machine = Machine()
    assert await machine.on_loop(seconds=0.5)
    assert await machine.on_loop(seconds=0.5)
    assert await machine.on_loop(seconds=0.001, reads=3)
    assert await machine.on_loop()


async def test_what_others_use_of_the_disk_counts_only_where_nobody_looks_closely() -> None:
    for closely in (False, True):
        machine = Machine(closely=closely)
        machine.reads += 5
        assert await machine.on_loop(seconds=0.5)
        assert await machine.on_loop() is closely
    assert await machine.on_loop(seconds=0.5, reads=1)
    assert not await machine.on_loop()
