"""Commands in forked processes: as good as a new interpreter for each, and a hundred times faster.

What may go wrong in a process happens in the child: a crash, a hang, a kill, memory without end.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlpcore.commands import main
from mlpcore.typing import StrPath

#: A child that is there for longer is killed by SIGALRM.
SECONDS = 60.0

#: Address space that a child may take beyond its parent's, so that the machine survives.
ADDRESSES = 2**33

#: What a child does; it returns the exit status.
Work: TypeAlias = Callable[[], int]


@dataclass(frozen=True)
class Outcome:
    """How a child ended.

    Attributes
    ----------
    status : int
        The exit status, or a signal as a negative number.
    out, err : bytes
    seconds : float
        Of the processor, so that other work on the machine does not count.
    memory : int
        By how many bytes the child's peak exceeded its parent's memory.
    """

    status: int
    out: bytes
    err: bytes
    seconds: float
    memory: int


@dataclass
class Child:
    """A running child. Its streams go to files in memory, which cannot block it."""

    pid: int
    out: int
    err: int
    memory: int

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Outcome:
        _, status, usage = os.wait4(self.pid, 0)
        seconds = usage.ru_utime + usage.ru_stime
        grown = max(0, 1024 * usage.ru_maxrss - self.memory)
        out, err = _content(self.out), _content(self.err)
        return Outcome(os.waitstatus_to_exitcode(status), out, err, seconds, grown)


def _content(descriptor: int) -> bytes:
    """All of a file in memory, which is closed."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def start(work: Work, seconds: float = SECONDS) -> Child:
    """Start a child. A negative status is a signal, 70 is an exception that nothing caught."""
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    memory = _resident()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _run(work, out, err, seconds)
    return Child(pid, out, err, memory)


def call(*argv: str, folder: StrPath = ".", seconds: float = SECONDS) -> Outcome:
    """The outcome of a command in a folder."""

    def work() -> int:
        os.chdir(folder)
        return main(argv)

    return start(work, seconds).wait()


def command(argv: Sequence[str]) -> Work:
    """A command for `start`."""
    return lambda: main(argv)


def _resident() -> int:
    """The bytes of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _run(work: Work, out: int, err: int, seconds: float) -> None:
    """What the child does; it never returns."""
    status = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        limit = pages * resource.getpagesize() + ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, buffering, closefd=False)
            for number, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
        )
        try:
            status = work()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
