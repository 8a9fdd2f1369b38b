"""What the CPU is, and what this process may use of the machine: cores and memory."""

from __future__ import annotations

import math
import os
import platform
import re
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
