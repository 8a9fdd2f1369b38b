"""The number of threads: the fastest, by a model of what a step takes on so many."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlpcore import Network, backends
from mlpcore.cpu import available_cores
from oracle import bits, trained, training_set


class Team(ctypes.Structure):
    """`mlp_team_size`, of a team whose size C chooses."""

    _fields_ = [
        ("n_weights", ctypes.c_ssize_t),
        *((name, ctypes.c_int) for name in ("most", "best", "trying", "room")),
        *((name, ctypes.c_double) for name in ("best_pace", "samples", "passed", "trial_at")),
        *((name, ctypes.c_double) for name in ("trial_pause", "room_until", "room_pause")),
    ]

    def choose(self, most, n_weights=1000):
        """Returns the number of threads it has now."""
        arguments = ctypes.c_long(n_weights), most, ctypes.byref(ctypes.c_double())
        return self.library.mlp_choose_team(ctypes.byref(self), *arguments)

    def note(self, threads, samples, seconds, lost_core=0):
        arguments = threads, samples, ctypes.c_double(seconds), lost_core
        self.library.mlp_note_team(ctypes.byref(self), *arguments)

    def run(self, most, seconds):
        """Chooses until the trials end; returns the sizes that were tried, and the choice."""
        tried = [self.choose(most)]
        while self.trying:
            for _ in range(5):  # calls of training, of which a trial has 0.02 seconds
                n = int(0.02 / 5 / seconds[tried[-1]]) + 1
                self.note(tried[-1], n, n * seconds[tried[-1]])
            tried.append(self.choose(most))
        return tried[:-1], tried[-1]


@pytest.fixture(scope="module")
def new_team(tmp_path_factory):
    if (compiler := shutil.which(os.environ.get("CC", "cc"))) is None:
        pytest.skip("no C compiler")
    source = Path(__file__).parents[2] / "cpu_simd" / "team_size.c"
    path = tmp_path_factory.mktemp("library") / "team_size.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, source], check=True)
    Team.library = ctypes.CDLL(str(path))
    return Team


@pytest.mark.parametrize(
    ("most", "seconds", "tried", "choice"),
    [
        # A barrier of two microseconds a thread: ten of work take least on two of eight threads.
        (8, {n: 1e-6 * (10 / n + 2 * (n - 1)) for n in range(1, 9)}, [8, 4, 2, 1], 2),
        (7, {n: 1e-6 * n for n in range(1, 8)}, [7, 4, 2, 1], 1),
        (1, {1: 1e-6}, [], 1),
        (2, {2: 1e-5, 1: 0.97e-5}, [2, 1], 2),  # a small gain
        (2, {2: 3e-4, 1: 1e-4}, [2], 2),  # a long step
    ],
)
def test_half_of_the_threads_while_faster(new_team, most, seconds, tried, choice):
    assert new_team().run(most, seconds) == (tried, choice)


def test_bits_beside_busy_processes():
    """Training goes on with fewer threads there, from the end of a block on."""
    sizes, cores, n = (150, 300, 200, 10), os.sched_getaffinity(0), available_cores()
    network = Network(sizes, 5, "relu", "cross-entropy")
    data = training_set(sizes, 20_000, 1, zeros=0.7, low=0)  # long enough for trials
    spinning = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spinning) for _ in range(2 * n)]
    try:
        crowded, _ = trained(backends.get("cpu", 2 * n), network, *data)
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert bits(crowded) == bits(trained(backends.get("cpu", 1), network, *data)[0])
    assert os.sched_getaffinity(0) == cores  # threads move away from the others only for a time
