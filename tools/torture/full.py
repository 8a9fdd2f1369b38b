"""Fills a disk up while a training writes to it, and makes room again: a small tmpfs, or a quota.

The training ends in one line, every file of the run is complete, and it goes on to the same bits.
Where tmpfs cannot be mounted, a limit of the length of files stands for the full disk.
"""

from __future__ import annotations

import os
import random
import resource
import tempfile
import time
from pathlib import Path

from mlpcore.errors import InputError
from torture import Result, forked, kills
from torture.power import run_quietly

#: Bytes of the disk. A save of the training takes about 600 kB.
DISK_BYTES = 2**22


def limited(work: forked.Work, limit: int | None) -> forked.Work:
    """The work with files of at most so many bytes."""

    def limited_work() -> int:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return work()

    return limited_work


def fill(disk: Path, free: int) -> None:
    """Leaves so many bytes free."""
    status = os.statvfs(disk)
    size = max(0, status.f_bavail * status.f_frsize - free)
    with open(disk / "filler", "wb") as file:
        file.write(bytes(size))


def series(
    disk: Path, is_disk: bool, expected: tuple[object, ...], rng: random.Random, result: Result
) -> None:
    """A training on a disk that is full some times."""
    run = disk / f"run{result.tried}"
    for _ in range(rng.randint(1, 4)):
        free, limit = rng.randrange(2**20), None
        if is_disk:
            fill(disk, free)
        else:
            limit = free
        outcome = forked.start(limited(kills.begin_or_resume(run), limit), kills.HANG).wait()
        (disk / "filler").unlink(missing_ok=True)
        lines = outcome.err.decode(errors="replace").splitlines()
        refused = outcome.status == 2 and len(lines) == 1 and lines[0].startswith("error: ")
        problem = f"status {outcome.status}, {lines}"
        result.count("" if refused or outcome.status == 0 else f"{free} bytes free: {problem}")
    problem = kills.finish(run)
    try:
        if not problem and kills.result_of(run) != expected:
            problem = "other bits than on an empty disk"
    except InputError as error:
        problem = str(error)
    if problem:
        result.violated += 1
        result.what.append(f"a full disk, then: {problem}")
    for path in run.iterdir():
        path.unlink()


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    with kills.loaded() as name, tempfile.TemporaryDirectory() as temporary:
        kills.finish(Path(temporary, "whole"))
        expected = kills.result_of(Path(temporary, "whole"))
        disk = Path(temporary, "disk")
        disk.mkdir()
        size = f"size={DISK_BYTES}"
        refused = run_quietly("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk))
        result.note = f"limited files instead of tmpfs: {refused}" if refused else f"on {name}"
        try:
            while time.monotonic() < end:
                series(disk, not refused, expected, rng, result)
        finally:
            if not refused:
                run_quietly("umount", str(disk))
    return result
