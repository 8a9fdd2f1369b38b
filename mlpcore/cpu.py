"""What the CPU is, and what this process may use of the machine: cores and memory."""

from __future__ import annotations

import math
import multiprocessing
import os
import platform
import re
import sys
from pathlib import Path


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> float:
    """CPUs that the control group allows (version 2 or 1), infinity when unlimited."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota_us = int((root / "cpu/cpu.cfs_quota_us").read_text())
        period_us = int((root / "cpu/cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 and period_us > 0 else math.inf
    except (OSError, ValueError):
        return math.inf


def available_cores() -> int:
    """Cores available to this process: its affinity, and its control group's quota."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, math.ceil(min(_cgroup_quota(), cores))))


def cores_beside_others() -> int:
    """Cores to use where others may compute beside us, as in a parallel search over settings.

    What ``OMP_NUM_THREADS`` says, which joblib sets in its worker processes to their share of
    the cores; else one in any other child process and in a worker thread of joblib; else all
    that are available.
    """
    cores = available_cores()
    outermost = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if outermost.isascii() and outermost.isdigit() and int(outermost) > 0:
        return min(int(outermost), cores)
    if multiprocessing.parent_process() is not None or _in_thread_of_joblib():
        return 1
    return cores


def _in_thread_of_joblib() -> bool:
    if "joblib" not in sys.modules:  # then there is none
        return False
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    return bool(backend.nesting_level)


def total_memory() -> int:
    """Bytes of memory that the machine or the control group grants."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            total = min(total, int((Path("/sys/fs/cgroup") / name).read_text()))
        except (OSError, ValueError):
            continue
    return total


def cpu_model() -> str:
    """The CPU's name."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    match = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()
