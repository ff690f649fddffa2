"""`python -m kairship.supervisor --data-dir DIR`: runs the supervisor in the foreground. It logs to stderr.

It ends on SIGTERM, on SIGINT, or on a call of `shutdown`, after all its processes have been stopped. The control socket
answers until then.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import structlog

from kairship.process.logs import log_as_json
from kairship.supervisor import lock
from kairship.supervisor.errors import SupervisorError
from kairship.supervisor.paths import Layout
from kairship.supervisor.server import serving
from kairship.supervisor.supervisor import Supervisor

log = structlog.get_logger()


async def supervise(layout: Layout) -> None:
    """Run the plane's processes until a signal or a call shuts the supervisor down."""
    supervisor = Supervisor(layout)
    async with asyncio.TaskGroup() as tasks:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, supervisor.closing.set)
        housekeeping = tasks.create_task(supervisor.housekeep())
        await supervisor.open(tasks)
        async with serving(supervisor, layout):
            log.info("serving", pid=os.getpid(), data_dir=str(layout.data_dir))
            await supervisor.closing.wait()
            log.info("shutting down")
            await supervisor.drain()
        housekeeping.cancel()
    log.info("ended")


def main() -> int:
    parser = argparse.ArgumentParser(prog="kairship.supervisor", description="Runs the processes of an embedded plane.")
    parser.add_argument("--data-dir", type=Path, required=True)
    layout = Layout.of(parser.parse_args().data_dir)
    log_as_json()
    layout.create()
    try:
        with lock.held(layout.lock):
            os.chdir("/")  # so that the caller's file system is not kept busy
            asyncio.run(supervise(layout))
    except (SupervisorError, OSError) as error:
        log.error("cannot run", problem=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
