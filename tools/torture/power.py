"""Cuts the power of a disk while a training writes to it: a file system in an image is shut down.

ext4 then keeps what it has written, without its open journal transaction, as after a power cut. The
training goes on from what is left, to the bits of a run without a cut. Only root may mount.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mlpcore.errors import InputError
from torture import Result, forked, kills

IMAGE_BYTES = 2**26

#: EXT4_IOC_SHUTDOWN, and its flag for a shutdown that writes nothing any more.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, 2


def run_quietly(*command: str) -> str:
    """Runs a program; what it says if it fails."""
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return " ".join(result.stderr.split()) or "failed" if result.returncode else ""


@contextlib.contextmanager
def mounted(image: Path, folder: Path) -> Iterator[None]:
    """Mounts an image; OSError if that cannot be done."""
    if problem := run_quietly("mount", "-o", "loop", str(image), str(folder)):
        raise OSError(problem)
    try:
        yield
    finally:
        run_quietly("umount", str(folder))


def cut_power(folder: Path) -> None:
    """Shuts the file system of a folder down."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
    finally:
        os.close(descriptor)


def cut_once(image: Path, folder: Path, seconds: float) -> None:
    """Trains for so long on the image, and cuts its power; the training fails or is killed."""
    with mounted(image, folder):
        child = forked.start(kills.begin_or_resume(folder / "run"), kills.HANG)
        time.sleep(seconds)
        cut_power(folder)
        child.kill()
        child.wait()


def series(work: Path, expected: tuple[object, ...], rng: random.Random, result: Result) -> None:
    """A training on a new disk whose power is cut some times."""
    image, folder = work / "image", work / "disk"
    folder.mkdir(exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    if problem := run_quietly("mkfs.ext4", "-q", "-F", str(image)):
        raise OSError(problem)
    times = []
    for _ in range(rng.randint(1, 6)):
        times.append(round(0.05 * 40 ** rng.random(), 3))
        cut_once(image, folder, times[-1])
        result.count()
    with mounted(image, folder):
        problem = kills.finish(folder / "run")
        try:
            if not problem and kills.result_of(folder / "run") != expected:
                problem = "other bits than without cuts"
        except InputError as error:
            problem = str(error)
    if problem:
        result.violated += 1
        result.what.append(f"power cut after {times} seconds: {problem}")


def run(seconds: float, seed: int) -> Result:
    """Tries for so many seconds."""
    result, rng, end = Result(), random.Random(seed), time.monotonic() + seconds
    with kills.loaded() as name, tempfile.TemporaryDirectory() as temporary:
        result.note = f"ext4, on {name}"
        kills.finish(Path(temporary, "whole"))
        expected = kills.result_of(Path(temporary, "whole"))
        try:
            while time.monotonic() < end:
                series(Path(temporary), expected, rng, result)
        except OSError as error:
            result.note = f"not here: {error}"
    return result
