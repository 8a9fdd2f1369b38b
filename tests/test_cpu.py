"""The cores that are ours where others compute beside us."""

import multiprocessing
import os

import pytest
from joblib import Parallel, delayed

from mlpcore.cpu import available_cores, cores_beside_others


@pytest.mark.parametrize("value, cores", [("3", 3), ("4,2", 4), (" 99 ", 8), ("0", 8), ("²", 8)])
def test_the_environment_says_how_many(monkeypatch, value, cores):
    monkeypatch.setattr("mlpcore.cpu.available_cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert cores_beside_others() == cores


def test_other_processes_and_threads_take_their_share(monkeypatch):
    """A process of joblib its part, any other child process and a thread of joblib one core."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    whole = cores_beside_others()
    assert whole == available_cores() <= len(os.sched_getaffinity(0))
    for options, cores in (
        ({"n_jobs": 2}, max(1, whole // 2)),
        ({"n_jobs": 2, "backend": "threading"}, 1),
        ({"n_jobs": 1, "backend": "threading"}, whole),
    ):
        assert Parallel(**options)(delayed(cores_beside_others)() for _ in range(4)) == [cores] * 4
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(cores_beside_others) == 1
