"""Kills, power cuts and full disks: a training that they stop goes on to the same bits.

Each campaign is a function of an empty folder and of random numbers. It stops a training, or a
committee, some times and lets it finish, and yields after each try: nothing, or what was wrong.
Only root may mount the disks.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from mlpcore.__main__ import main
from mlpcore.data import dataset
from mlpcore.store.committee import CommitteeFolder, holds_committee
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS
from mlpcore.store.weights import read_network, weights_sha256
from torture import forked

#: Tries in an empty folder with random numbers.
Campaign: TypeAlias = Callable[[Path, random.Random], Iterator[str]]

TRAINING = (
    *("train", "--dataset", "digits", "--arch", "64", "--epochs", "30"),
    *("--threads", "2", "--seed", "3", "--out"),
)

COMMITTEE = (
    *("committee", "--dataset", "digits", "--arch", "30", "--epochs", "12", "--threads", "1"),
    *("--members", "2", "--out"),
)

#: The seeds of the two committees that are begun in one folder.
SEEDS = 3, 4

#: Bytes of a disk for ext4, and of one that gets full; a save of the training takes 70 kB.
EXT4_BYTES, SMALL_BYTES = 2**26, 2**21

#: EXT4_IOC_SHUTDOWN, and its flag for a shutdown that writes nothing any more.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, 2


def begin_or_resume(run: Path) -> int:
    """What a user types after a disaster: the same command, or --resume if there is a run."""
    if os.path.lexists(run / CONFIG):
        return main(["train", "--resume", str(run), "--threads", "2"])
    return main([*TRAINING, str(run)])


def start(run: Path) -> forked.Child:
    return forked.start(lambda: begin_or_resume(run))


def bits(run: Path) -> list[Any]:
    """Everything in a finished run but its times."""
    lines = map(json.loads, (run / METRICS).read_text().splitlines())
    history = [{name: line[name] for name in line if "seconds" not in name} for line in lines]
    return [history, *(weights_sha256(read_network(run / name)[0]) for name in (BEST, LAST))]


@functools.cache
def undisturbed() -> list[Any]:
    """What the training comes to without a disaster."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        assert start(run).wait().status == 0
        return bits(run)


def finish(run: Path) -> str:
    """Train to the end; what is wrong with that."""
    outcome = start(run).wait()
    if outcome.status:
        return f"status {outcome.status}: {outcome.err[-300:]!r}"
    return "" if bits(run) == undisturbed() else "other bits than without it"


def moment(rng: random.Random) -> float:
    """Seconds between 0.002 and 2, spread evenly in their logarithm."""
    return round(0.002 * 1000 ** rng.random(), 4)


def kills(folder: Path, rng: random.Random) -> Iterator[str]:
    """SIGKILL at random moments of a training."""
    times = []
    for _ in range(rng.randint(1, 20)):
        child = start(folder / "run")
        times.append(moment(rng))
        time.sleep(times[-1])
        if child.kill().status == 0:
            break
        yield ""
    if problem := finish(folder / "run"):
        yield f"killed after {times} s: {problem}"


def load_modules() -> None:
    """Import what a committee does, so that forked ones need not, and both begin at once."""
    importlib.import_module("mlpcore.commands.committee")
    dataset.load(name="digits")


def start_committee(folder: Path, seed: int) -> forked.Child:
    return forked.start(lambda: main([*COMMITTEE, str(folder), "--seed", str(seed)]))


def bits_of_members(folder: Path) -> list[Any]:
    members = CommitteeFolder.open(folder).members
    return [bits(folder / each.name) for each in members]


@functools.cache
def undisturbed_committee(seed: int) -> list[Any]:
    """What the members come to without a disaster."""
    with tempfile.TemporaryDirectory() as folder:
        assert start_committee(Path(folder), seed).wait().status == 0
        return bits_of_members(Path(folder))


def committees(folder: Path, rng: random.Random) -> Iterator[str]:
    """SIGKILL at random moments of two committees of other seeds, begun at once in one folder.

    One of them has the folder and goes on to the same bits; the other is refused in a line.
    """
    load_modules()
    times: list[float] = []
    ended = False
    while not ended and len(times) < 12:
        children = [start_committee(folder, seed) for seed in rng.sample(SEEDS, 2)]
        times.append(2 * moment(rng))
        time.sleep(times[-1])
        outcomes = [each.kill() for each in children]
        ended = any(each.status == 0 for each in outcomes)
        faults = [forked.fault(each) for each in outcomes if each.status != -signal.SIGKILL]
        problem = "; ".join(filter(None, faults))
        yield f"two committees for {times} s: {problem}" if problem else ""
    begun = holds_committee(folder)
    seed = CommitteeFolder.open(folder).members[0].config.seed if begun else SEEDS[0]
    outcome = start_committee(folder, seed).wait()
    if outcome.status:
        yield f"killed after {times} s: status {outcome.status}: {outcome.err[-300:]!r}"
    elif bits_of_members(folder) != undisturbed_committee(seed):
        yield f"killed after {times} s: other bits than without it"


def system(*command: str) -> None:
    """Run a program; OSError with what it says if it fails."""
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise OSError(f"{command[0]}: {' '.join(result.stderr.split())}")


@contextlib.contextmanager
def mounted(folder: Path, *source: str) -> Iterator[Path]:
    """A folder `disk` with a file system, which is unmounted at the end."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    system("mount", *source, str(disk))
    try:
        yield disk
    finally:
        system("umount", str(disk))


def power_cuts(folder: Path, rng: random.Random) -> Iterator[str]:
    """Power cuts of the disk that a training writes to.

    ext4 then keeps what it has written, without its open journal transaction.
    """
    image, times = folder / "image", []
    with open(image, "wb") as file:
        file.truncate(EXT4_BYTES)
    system("mkfs.ext4", "-q", "-F", str(image))
    for _ in range(rng.randint(1, 6)):
        with mounted(folder, "-o", "loop", str(image)) as disk:
            child = start(disk / "run")
            times.append(moment(rng))
            time.sleep(times[-1])
            descriptor = os.open(disk, os.O_RDONLY)
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
            os.close(descriptor)
            child.kill()
        yield ""
    with mounted(folder, "-o", "loop", str(image)) as disk:
        if problem := finish(disk / "run"):
            yield f"power cut after {times} s: {problem}"


def full_disks(folder: Path, rng: random.Random) -> Iterator[str]:
    """A disk that is full while a training writes to it, which ends in one line."""
    with mounted(folder, "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs") as disk:
        for _ in range(rng.randint(1, 4)):
            free = rng.randrange(2**18)
            (disk / "filler").write_bytes(bytes(max(0, shutil.disk_usage(disk).free - free)))
            problem = forked.fault(start(disk / "run").wait())
            (disk / "filler").unlink()
            yield f"{free} bytes free: {problem}" if problem else ""
        if problem := finish(disk / "run"):
            yield f"a full disk, then: {problem}"


COMMANDS = (
    ("train", "--dataset", "digits", "--arch", "30", "--epochs", "1000"),
    ("evaluate", "none", "--dataset", "digits"),
    ("predict", "none.png"),
    ("preview", "--dataset", "digits"),
    ("backends",),
)

#: What may stand on stderr after Ctrl-C.
SAID = ("", "interrupted\n", "stopped before training began\n")


def interrupts(folder: Path, rng: random.Random) -> Iterator[str]:
    """Ctrl-C in the first half second of a command: a quiet end with status 130."""
    command, seconds = rng.choice(COMMANDS), rng.random() / 2
    process = subprocess.Popen(
        [sys.executable, "-m", "mlpcore", *command], cwd=folder, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        # A shell lets programs in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=forked.HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
    ours = re.search(r"mlpcore/(?!__init__|__main__|interrupts|version)", err)
    before = "Traceback" in err and not ours  # Python had not come to `leave_on_interrupt` yet
    after = process.returncode in (0, 2, -signal.SIGINT) and "interrupted" not in err  # it was done
    quiet = process.returncode in (130, -signal.SIGINT) and err in SAID
    problem = f"{' '.join(command)} after {seconds} s: status {process.returncode}, {err[-300:]!r}"
    yield "" if before or quiet or (after and "Traceback" not in err) else problem
