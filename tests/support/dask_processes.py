"""A Dask cluster of real processes on this machine, to be killed."""

import contextlib
import random
import socket
import subprocess
import sys

from mlpcore import InputError
from mlpcore.cluster import check_scheduler

HERE = "--host", "127.0.0.1", "--no-dashboard"


def dask(*arguments):
    command = [sys.executable, "-m", "dask", *arguments, *HERE]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class DaskProcesses:
    """A scheduler and workers. In place of a killed worker another one starts."""

    def __init__(self, n_workers):
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        self.address, self.killed = f"tcp://127.0.0.1:{port}", 0
        self.scheduler = dask("scheduler", "--port", str(port))
        self.workers = [self._start_worker() for _ in range(n_workers)]

    def _start_worker(self):
        return dask("worker", self.address, "--nthreads", "1", "--no-nanny")

    def __enter__(self):
        while self.scheduler.poll() is None:
            with contextlib.suppress(InputError):
                check_scheduler(self.address)
                return self
        raise RuntimeError("the scheduler has ended")

    def __exit__(self, *exception):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def kill_worker(self):
        """Kills one of the workers, by SIGKILL."""
        worker = self.workers.pop(random.randrange(len(self.workers)))
        worker.kill()
        worker.wait()
        self.workers.append(self._start_worker())
        self.killed += 1
