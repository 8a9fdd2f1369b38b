"""Kills, power cuts and full disks at random: a training that they stop goes on to the same bits.

Only `make torture` runs these tests, round after round. Only root may mount the disks.
"""

import contextlib
import fcntl
import importlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import pytest

import forked
from mlpcore.__main__ import main
from mlpcore.data import dataset
from mlpcore.store.committee import CommitteeFolder, holds_committee
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS
from mlpcore.store.weights import read_network, weights_sha256

TORTURE = os.environ.get("HYPOTHESIS_PROFILE") == "torture"

pytestmark = pytest.mark.skipif(not TORTURE, reason="takes long: make torture")

TRAIN = "train --dataset digits --arch 64 --epochs 30 --threads 2 --seed 3 --out"

COMMITTEE = "committee --dataset digits --arch 30 --epochs 12 --threads 1 --members 2 --out"

#: The seeds of the two committees that are begun in one folder.
SEEDS = 3, 4

#: Bytes of a disk for ext4, and of one that gets full; a save of the training takes 70 kB.
EXT4_BYTES, SMALL_BYTES = 2**26, 2**21

#: EXT4_IOC_SHUTDOWN, and its flag for a shutdown that writes nothing any more.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, 2


@pytest.fixture
def rng(request):
    """Other random numbers in each test and each round."""
    return random.Random(f"{request.config.getoption('--hypothesis-seed')} {request.node.name}")


def begin_or_resume(run):
    """What a user types after a disaster: the same command, or --resume if there is a run."""
    resumed = ["train", "--resume", str(run), "--threads", "2"]
    return main(resumed if os.path.lexists(run / CONFIG) else [*TRAIN.split(), str(run)])


def start(run):
    return forked.start(lambda: begin_or_resume(run))


def start_committee(folder, seed):
    return forked.start(lambda: main([*COMMITTEE.split(), str(folder), "--seed", str(seed)]))


def bits(run):
    """Everything in a finished run but its times."""
    lines = map(json.loads, (run / METRICS).read_text().splitlines())
    history = [{name: line[name] for name in line if "seconds" not in name} for line in lines]
    return [history, *(weights_sha256(read_network(run / name)[0]) for name in (BEST, LAST))]


def bits_of_members(folder):
    return [bits(folder / each.name) for each in CommitteeFolder.open(folder).members]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the training comes to without a disaster, and how many seconds it takes."""
    for name in ("train", "committee"):  # so that forked children begin at once
        importlib.import_module(f"mlpcore.commands.{name}")
    dataset.load(name="digits")
    run, started = tmp_path_factory.mktemp("undisturbed") / "run", time.monotonic()
    assert start(run).wait().status == 0
    return bits(run), time.monotonic() - started


def assert_finishes(run, undisturbed, disaster):
    """The training goes on to its end, to the same bits."""
    outcome = start(run).wait()
    assert outcome.status == 0, (disaster, outcome)
    assert bits(run) == undisturbed[0], disaster


def wait_a_moment(rng, undisturbed):
    """Up to the seconds of a training; a thousandth of them is as likely as all."""
    seconds = undisturbed[1] * 1000 ** (rng.random() - 1)
    time.sleep(seconds)
    return round(seconds, 4)


def test_kills(tmp_path, rng, undisturbed):
    """SIGKILL at random moments of a training."""
    times = []
    for _ in range(rng.randint(1, 20)):
        child = start(tmp_path / "run")
        times.append(wait_a_moment(rng, undisturbed))
        if child.kill().status == 0:
            break
    assert_finishes(tmp_path / "run", undisturbed, f"killed after {times} s")


def test_committees(tmp_path, rng, undisturbed):
    """SIGKILL at random moments of two committees of other seeds, begun at once in one folder.

    One of them has the folder and goes on to the same bits; the other is refused in a line.
    """
    folder, times, ended = tmp_path / "disturbed", [], False
    folder.mkdir()
    while not ended and len(times) < 12:
        children = [start_committee(folder, seed) for seed in rng.sample(SEEDS, 2)]
        times.append(wait_a_moment(rng, undisturbed))
        outcomes = [each.kill() for each in children]
        ended = any(each.status == 0 for each in outcomes)
        for outcome in outcomes:
            assert outcome.status == -signal.SIGKILL or forked.fault(outcome) == "", times
    begun = holds_committee(folder)
    seed = CommitteeFolder.open(folder).members[0].config.seed if begun else SEEDS[0]
    for each in (folder, tmp_path / "undisturbed"):
        outcome = start_committee(each, seed).wait()
        assert outcome.status == 0, (times, outcome)
    assert bits_of_members(folder) == bits_of_members(tmp_path / "undisturbed"), times


@contextlib.contextmanager
def mounted(folder, *source):
    """A folder `disk` with a file system, which is unmounted at the end."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *source, str(disk)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"not here: {done.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_power_cuts(tmp_path, rng, undisturbed):
    """ext4 keeps what it has written, without its open journal transaction."""
    image, times = tmp_path / "image", []
    with open(image, "wb") as file:
        file.truncate(EXT4_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    for _ in range(rng.randint(1, 6)):
        with mounted(tmp_path, "-o", "loop", str(image)) as disk:
            child = start(disk / "run")
            times.append(wait_a_moment(rng, undisturbed))
            descriptor = os.open(disk, os.O_RDONLY)
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
            os.close(descriptor)
            child.kill()
    with mounted(tmp_path, "-o", "loop", str(image)) as disk:
        assert_finishes(disk / "run", undisturbed, f"power cuts after {times} s")


def test_full_disks(tmp_path, rng, undisturbed):
    """A disk that is full while a training writes to it, which ends in one line."""
    with mounted(tmp_path, "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs") as disk:
        for _ in range(rng.randint(1, 4)):
            free = rng.randrange(2**18)
            (disk / "filler").write_bytes(bytes(max(0, shutil.disk_usage(disk).free - free)))
            assert forked.fault(start(disk / "run").wait()) == "", f"{free} bytes free"
            (disk / "filler").unlink()
        assert_finishes(disk / "run", undisturbed, "a full disk")
