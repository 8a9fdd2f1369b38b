"""The cores and the memory that this process may use, and the name of the CPU."""

import contextlib
import functools
import itertools
import math
import multiprocessing
import os
import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlpcore.errors import InputError

#: Where Linux says in which control groups a process is, and where they are.
MEMBERSHIP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def _limits(controller: str, *files: Sequence[str]) -> Iterator[list[int]]:
    """Yields the numbers in files of the control groups around this process, where there are some.

    Version 2 has one hierarchy for all controllers, and other files than version 1. A container may
    see its own group as the root, and be told a path outside.
    """
    with contextlib.suppress(OSError):
        for line in MEMBERSHIP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = GROUPS / controller if controllers else GROUPS
            group = root / os.path.normpath(path).lstrip("/")
            for folder, names in itertools.product((group, *group.parents), files):
                with contextlib.suppress(OSError, ValueError):  # ValueError: "max"
                    texts = [(folder / name).read_text() for name in names]
                    yield list(map(int, " ".join(texts).split()))


def available_cores() -> int:
    """Return the number of cores that the affinity and the control groups allow."""
    count = getattr(os, "sched_getaffinity", None)  # which macOS and Windows lack
    cores = len(count(0)) if count else os.cpu_count() or 1
    limits = _limits("cpu", ["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"])
    allowed = (math.ceil(quota / period) for quota, period in limits if quota > 0)
    return min([cores, *allowed])


def cores_beside_others() -> int:
    """Return the number of cores to use where a parallel search may run others beside us.

    The first rule that applies decides:

    1. ``OMP_NUM_THREADS``. joblib sets it in its worker processes to their share of the cores.
    2. One core in any other child process, and in a worker thread of joblib.
    3. All available cores.
    """
    from joblib.parallel import get_active_backend  # not above: it takes 0.1 s to import

    cores = available_cores()
    outermost = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if outermost.isascii() and outermost.isdigit() and int(outermost) > 0:
        return min(int(outermost), cores)
    backend, _ = get_active_backend()
    return 1 if multiprocessing.parent_process() or backend.nesting_level else cores


@functools.cache  # to ask takes as long as to copy a small network
def total_memory() -> int:
    """Return the bytes of memory of the machine, or of a control group if that allows less."""
    if not hasattr(os, "sysconf"):  # Windows
        import psutil  # installed there only

        return psutil.virtual_memory().total
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = _limits("memory", ["memory.max"], ["memory.limit_in_bytes"])
    return min([total, *(limit for (limit,) in limits)])


def check_memory(needed: int, what: str) -> None:
    """Raise InputError if something needs more bytes than `total_memory`."""
    if needed > (memory := total_memory()):
        raise InputError(
            f"{what} need about {needed / 2**30:,.1f} GiB: "
            f"expected at most {memory / 2**30:,.1f} GiB, the memory of this machine"
        )


def cpu_model() -> str:
    """Return the name of the CPU."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    match = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()
