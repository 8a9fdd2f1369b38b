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
from oracle import bits

SOURCE = Path(__file__).parents[2] / "cpu_simd" / "team_size.c"
COMPILER = shutil.which(os.environ.get("CC", "cc"))

#: Seconds of a trial.
TRIAL = 0.02


class TeamSize(ctypes.Structure):
    """`mlp_team_size`."""

    _fields_ = [
        ("n_weights", ctypes.c_long),
        *((name, ctypes.c_int) for name in ("most", "best", "trying", "room")),
        *((name, ctypes.c_double) for name in ("best_pace", "samples", "passed", "trial_at")),
        *((name, ctypes.c_double) for name in ("trial_pause", "room_until", "room_pause")),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("library") / "team_size.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture(scope="module")
def choose(library):
    def choose(size, most, n_weights=1000):
        """How many threads a team has now."""
        until = ctypes.c_double()
        arguments = ctypes.byref(size), ctypes.c_long(n_weights), most, ctypes.byref(until)
        return library.mlp_choose_team(*arguments)

    return choose


@pytest.fixture(scope="module")
def note(library):
    def note(size, threads, samples, seconds, lost_core=0):
        passed = ctypes.c_double(seconds)
        library.mlp_note_team(ctypes.byref(size), threads, samples, passed, lost_core)

    return note


@pytest.fixture(scope="module")
def run(choose, note):
    def run(size, most, seconds, calls=1):
        """Teams until the trials end; returns the sizes that were tried, and the choice."""
        tried = [choose(size, most)]
        while size.trying:
            for _ in range(calls):
                n = int(TRIAL / calls / seconds[tried[-1]]) + 1
                note(size, tried[-1], n, n * seconds[tried[-1]])
            tried.append(choose(size, most))
        return tried[:-1], tried[-1]

    return run


#: A barrier of two microseconds a thread: ten of work take least on two of eight threads.
BARRIERS = {n: 1e-6 * (10 / n + 2 * (n - 1)) for n in range(1, 9)}


@pytest.mark.parametrize(
    ("most", "seconds", "tried", "choice"),
    [
        (8, BARRIERS, [8, 4, 2, 1], 2),
        (7, {n: 1e-6 * n for n in range(1, 8)}, [7, 4, 2, 1], 1),
        (1, {1: 1e-6}, [], 1),
        (2, {2: 1e-5, 1: 0.97e-5}, [2, 1], 2),  # a small gain
        (2, {2: 3e-4, 1: 1e-4}, [2], 2),  # a long step
    ],
)
@pytest.mark.parametrize("calls", [1, 5])
def test_half_of_the_threads_as_long_as_that_is_faster(run, most, seconds, tried, choice, calls):
    assert run(TeamSize(), most, seconds, calls) == (tried, choice)


@given(st.integers(1, 64), st.data())
def test_the_choice_is_never_slower_than_all_threads(run, most, data):
    seconds = {n: data.draw(st.floats(1e-6, 1e-3)) for n in range(1, most + 1)}
    _, choice = run(TeamSize(), most, seconds)
    assert seconds[choice] <= seconds[most]


def test_trials_come_again_and_for_another_network(run, choose):
    size, seconds = TeamSize(), {2: 2e-5, 1: 1e-5}
    assert run(size, 2, seconds) == ([2, 1], 1)
    assert run(size, 2, seconds) == ([], 1)
    size.trial_at = 0  # the pause is over
    assert run(size, 2, {2: 1e-5, 1: 2e-5}) == ([2, 1], 2)
    assert choose(size, 2, 2000) == 2 and size.trying == 2


def test_a_team_that_lost_a_core_goes_on_with_half(run, choose, note):
    """For longer and longer, while that happens at once; a trial then says nothing."""
    size, pauses = TeamSize(), []
    assert run(size, 4, {4: 1e-5, 2: 2e-5})[1] == 4
    for seconds in (9.0, 0.1, 0.1, 9.0):
        size.trial_at = size.room_until = 0
        assert choose(size, 4) == size.trying == 4
        note(size, 4, 1000, seconds, lost_core=1)
        assert not size.trying and choose(size, 4) == 2
        pauses.append(size.room_pause)
    assert pauses == [0.5, 1.0, 2.0, 0.5]


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
        networks.append(Network((200, 300, 10), 5, "relu", "cross-entropy"))
        simd.SimdBackend(name, n).train(networks[-1], images, labels, order, 1e-3)
    assert bits(networks[0]) == bits(networks[1])
