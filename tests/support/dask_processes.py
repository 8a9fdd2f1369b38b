"""A Dask cluster of real processes on this machine, to be killed."""

import contextlib
import random
import socket
import subprocess
import sys
import time

import psutil

from mlpcore import InputError
from mlpcore.cluster import check_scheduler

DASK = [sys.executable, "-m", "dask"]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class DaskProcesses:
    """A scheduler and workers with nannies, which start a killed worker again."""

    def __init__(self, n_workers, *worker_options):
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.killed = 0
        port = self.address.rpartition(":")[2]
        here = ["--host", "127.0.0.1", "--no-dashboard"]
        self.scheduler = subprocess.Popen([*DASK, "scheduler", *here, "--port", port], **QUIET)
        options = ["--nthreads", "1", "--death-timeout", "60", *here, *worker_options]
        self.nannies = [
            psutil.Popen([*DASK, "worker", self.address, *options], **QUIET)
            for _ in range(n_workers)
        ]

    def __enter__(self):
        while self.scheduler.poll() is None:
            with contextlib.suppress(InputError):
                check_scheduler(self.address)
                return self
        raise RuntimeError("the scheduler has ended")

    def __exit__(self, *exception):
        mine = [each for nanny in self.nannies for each in self._with_children(nanny)]
        for process in [*mine, self.scheduler]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.scheduler.wait()
        psutil.wait_procs(mine)

    @staticmethod
    def _with_children(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            return [process, *process.children(recursive=True)]
        return []

    def workers(self):
        """The processes that compute."""
        found = []
        for nanny in self.nannies:
            for process in self._with_children(nanny)[1:]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if any("spawn_main" in word for word in process.cmdline()):
                        found.append(process)
        return found

    def kill_worker(self, rng=random):
        """Kills one of the workers that live, by SIGKILL."""
        while not (alive := self.workers()):
            time.sleep(0.05)
        rng.choice(alive).kill()
        self.killed += 1
