"""Commands in forked processes, a hundred times faster than in new ones, and how they end.

A crash, a hang, a kill or memory without end happens in the child.
"""

import os
import resource
import signal
import sys
import traceback
from dataclasses import dataclass

from mlpcore.__main__ import main
from mlpcore.errors import MAX_LINE

#: Seconds after which SIGALRM ends a child, and bytes that it may allocate.
HANG, ALLOCATED = 600.0, 2**33

#: What a command may take on a small file, beyond what its parent has: bytes, and seconds of the
#: processor, which leave room for slow machines.
MAX_MEMORY, MAX_SECONDS = 2**29, 10.0


@dataclass(frozen=True)
class Outcome:
    """The end of a child process."""

    status: int  #: of its exit, or a signal as a negative number; 70 after an exception
    out: str
    err: str
    seconds: float  #: of the processor
    memory: int  #: bytes by which the child's peak exceeded its parent's memory


def _content(descriptor):
    """All of a file in memory, which is closed."""
    with open(descriptor, encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.seek(0)
        return file.read()


def run(work, folder="."):
    """The outcome of a function in a folder, whose result is the exit status."""
    streams = os.memfd_create("stdout"), os.memfd_create("stderr")  # which cannot block the child
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * resource.getpagesize()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _run(work, folder, streams)
    _, status, usage = os.wait4(pid, 0)
    grown = max(0, 1024 * usage.ru_maxrss - resident)
    seconds = usage.ru_utime + usage.ru_stime
    return Outcome(os.waitstatus_to_exitcode(status), *map(_content, streams), seconds, grown)


def call(*argv, folder="."):
    """The outcome of a command in a folder."""
    return run(lambda: main(argv), folder)


def _run(work, folder, streams):
    """The work of the child; it never returns."""
    status = 70
    try:
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, HANG)
        resource.setrlimit(resource.RLIMIT_DATA, (ALLOCATED, ALLOCATED))
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), *streams)):
            os.dup2(descriptor, number)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", 1, closefd=False) for n in (1, 2))
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


def fault(outcome):
    """The fault in how a command ended; empty if it worked, or refused in one line."""
    said, lines = outcome.err.splitlines(), (outcome.out + outcome.err).split("\n")
    refusals = [line for line in said if line.startswith("error: ")]
    longest, known = max(map(len, lines)), ("error: ", "note: ", "warning: ")
    checks = {
        f"status {outcome.status}": outcome.status not in (0, 2),
        f"{len(refusals)} lines of errors": len(refusals) != (outcome.status == 2),
        "a strange line on stderr": not all(line.startswith(known) for line in said),
        "control characters": not all(map(str.isprintable, lines)),
        f"a line of {longest:,} characters": longest > MAX_LINE,
        f"{outcome.seconds:.1f} seconds": outcome.seconds > MAX_SECONDS,
        f"{outcome.memory / 2**20:,.0f} MiB": outcome.memory > MAX_MEMORY,
    }
    found = "; ".join(text for text, wrong in checks.items() if wrong)
    return f"{found}: {outcome.err[-500:]!r}" if found else ""
