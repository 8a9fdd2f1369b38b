"""The cores that are ours where others compute beside us."""

import multiprocessing
import os

import pytest
from joblib import Parallel, delayed

from mlpcore.cpu import available_cores, cores_beside_others


@pytest.fixture(autouse=True)
def without_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr("mlpcore.cpu.available_cores", lambda: 8)


def test_alone_all_cores_are_ours():
    assert cores_beside_others() == available_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("value", "cores"), [("3", 3), ("4,2", 4), (" 5 ", 5), ("99", 8), ("", 8), ("0", 8), ("²", 8)]
)
def test_the_environment_says_how_many(eight_cores, monkeypatch, value, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert cores_beside_others() == cores


def test_a_worker_process_of_joblib_takes_its_share():
    seen = Parallel(2)(delayed(cores_beside_others)() for _ in range(4))
    assert seen == [max(1, available_cores() // 2)] * 4


@pytest.mark.parametrize("n_jobs, cores", [(1, 8), (2, 1)])
def test_a_worker_thread_of_joblib_takes_one_core(eight_cores, n_jobs, cores):
    seen = Parallel(n_jobs, backend="threading")(delayed(cores_beside_others)() for _ in range(4))
    assert seen == [cores] * 4


def test_any_other_child_process_takes_one_core():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(cores_beside_others) == 1
