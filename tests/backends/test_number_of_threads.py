"""The number of threads: the fastest, by a model of what a step takes on so many."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore import Network
from mlpcore.backends import simd

SOURCES = Path(__file__).parents[2] / "cpu_simd"
COMPILER = shutil.which(os.environ.get("CC", "cc"))

#: Seconds of a trial.
TRIAL = 0.02


class Pace(ctypes.Structure):
    """`mlp_pace` of pace.h."""

    _fields_ = [
        ("n_weights", ctypes.c_long),
        ("most", ctypes.c_int),
        ("best", ctypes.c_int),
        ("trying", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("best_pace", "samples", "passed", "again", "pause")),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("pace") / "pace.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, SOURCES / "pace.c"], check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def threads(library):
    def threads(pace, most, n_weights=1000):
        """How many threads a team has now."""
        return library.mlp_paced_threads(ctypes.byref(pace), ctypes.c_long(n_weights), most)

    return threads


@pytest.fixture(scope="module")
def run(library, threads):
    def run(pace, most, seconds, calls=1):
        """Teams until the trials end; returns the sizes that were tried, and the choice."""
        tried = [threads(pace, most)]
        while pace.trying:
            for _ in range(calls):
                n = int(TRIAL / calls / seconds[tried[-1]]) + 1
                passed = ctypes.c_double(n * seconds[tried[-1]])
                library.mlp_note_pace(ctypes.byref(pace), n, passed)
            tried.append(threads(pace, most))
        return tried[:-1], tried[-1]

    return run


def test_half_of_the_threads_as_long_as_that_is_faster(run):
    """A barrier of two microseconds a thread: ten of work take least on two of eight threads."""
    seconds = {n: 1e-6 * (10 / n + 2 * (n - 1)) for n in range(1, 9)}
    assert run(Pace(), 8, seconds) == ([8, 4, 2, 1], 2)
    assert run(Pace(), 8, seconds, calls=5) == ([8, 4, 2, 1], 2)


def test_odd_numbers_of_threads_and_a_single_one(run):
    seconds = {n: 1e-6 * n for n in range(1, 8)}
    assert run(Pace(), 7, seconds) == ([7, 4, 2, 1], 1)
    assert run(Pace(), 1, seconds) == ([], 1)


def test_little_gains_and_long_steps_keep_all_threads(run):
    assert run(Pace(), 2, {2: 1e-5, 1: 0.97e-5}) == ([2, 1], 2)
    assert run(Pace(), 2, {2: 3e-4, 1: 1e-4}) == ([2], 2)


@given(st.integers(1, 64), st.data())
def test_the_choice_is_never_slower_than_all_threads(run, most, data):
    seconds = {n: data.draw(st.floats(1e-6, 1e-3)) for n in range(1, most + 1)}
    _, choice = run(Pace(), most, seconds)
    assert seconds[choice] <= seconds[most]


def test_trials_come_again_and_for_another_network(run, threads):
    pace, seconds = Pace(), {2: 2e-5, 1: 1e-5}
    assert run(pace, 2, seconds) == ([2, 1], 1)
    assert run(pace, 2, seconds) == ([], 1)
    pace.again = 0  # the pause is over
    assert run(pace, 2, {2: 1e-5, 1: 2e-5}) == ([2, 1], 2)
    assert threads(pace, 2, 2000) == 2 and pace.trying == 2


def test_a_dropped_trial_keeps_what_was_best(library, run, threads):
    pace = Pace()
    assert run(pace, 2, {2: 2e-5, 1: 1e-5})[1] == 1
    pace.again = 0
    assert threads(pace, 2) == 2
    library.mlp_drop_trial(ctypes.byref(pace))
    assert threads(pace, 2) == 1 and not pace.trying


@pytest.mark.parametrize(
    "name", [n for n in simd.INSTRUCTION_SETS if not simd.unavailable_reason(n)]
)
def test_trials_change_no_bits(name):
    """Training long enough for trials with fewer threads than four, or than there are cores."""
    rng = np.random.default_rng(1)
    images = np.maximum(rng.uniform(-2, 1, (9000, 200)), 0).astype(np.float32)
    labels = rng.integers(0, 10, 9000).astype(np.uint8)
    order, networks = np.arange(9000, dtype=np.int32), []
    for n in (1, 4):
        network = Network((200, 300, 10), 5, "relu", "cross-entropy")
        simd.SimdBackend(name, n).train(network, images, labels, order, 1e-3)
        networks.append(b"".join(w.tobytes() for w in network.weights))
    assert networks[0] == networks[1]
