"""Ends what a test run started, however the run itself ended.

`python -m support.reaper FOLDER` runs beside the run as a process of its own. Its standard input is a pipe that the run
holds open; when the run is gone, even by SIGKILL, the pipe closes. Supervisors are recognised by the environment that
every process of a run inherits (`LOCATION`), and whatever a supervisor started ends with the supervisor.
"""

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

LOCATION = "KAIRSHIP_TEST_PLANE"
"""The variable that names the folder of the run's shared plane."""
_SUPERVISOR = "kairship.supervisor"
_PATIENCE = 30.0


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """Starts the reaper of the calling process. Closing its standard input tells it that the run is over."""
    command = [sys.executable, "-m", "support.reaper", str(folder)]
    # In a session of its own: the signals of a terminal and of `timeout` are for the run.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, start_new_session=True, cwd=Path(__file__).parents[1], env={"PATH": ""}
    )


def reap(folder: Path) -> None:
    supervisors = [process for process in psutil.process_iter() if _is_of(process, folder)]
    for process in supervisors:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, alive = psutil.wait_procs(supervisors, timeout=_PATIENCE)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def _is_of(process: psutil.Process, folder: Path) -> bool:
    try:
        return _SUPERVISOR in process.cmdline() and process.environ().get(LOCATION) == str(folder)
    except psutil.Error:
        return False


def main() -> None:
    sys.stdin.buffer.read()
    reap(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
