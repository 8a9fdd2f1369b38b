"""Members on workers that are killed, and without a scheduler: the bits of one machine."""

import os
import random
import threading

import pytest

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

from dask_processes import DaskProcesses
from mlpcore import dataset
from mlpcore.cluster import LostScheduler, chains, train_members
from small_committees import Follower, assert_undisturbed, make_committee
from small_runs import write_idx

LONG = bool(os.environ.get("MLPCORE_LONG_TESTS"))


@pytest.fixture
def data(tmp_path):
    return dataset.load(write_idx(tmp_path / "letters"))


def test_killed_workers_and_a_killed_scheduler_change_no_bit(tmp_path, data):
    """Kills at random places of the training; seven members on two workers."""
    kills, epochs = (20, 60) if LONG else (2, 8)
    committee = make_committee(tmp_path / "c", data, (4,), n=7, epochs=epochs)
    options = {"epochs_per_task": 2}
    results, rng = len(committee.members) * epochs // 2, random.Random(os.getpid())
    # Some results may have come by the time at which the scheduler dies: they must not be the last.
    *places, last = sorted(rng.sample(range(1, results - 14), kills + 1))
    killers = [threading.Timer(rng.random() / 5, lambda: cluster.kill_worker(rng)) for _ in places]

    def kill(count):
        if count in places:
            killers[places.index(count)].start()
        elif count == last:
            for killer in killers:
                killer.join()
            cluster.scheduler.kill()

    with DaskProcesses(2) as cluster, pytest.raises(LostScheduler, match="is lost"):
        train_members(committee, data, Follower(kill), scheduler=cluster.address, **options)
    assert cluster.killed == kills
    with DaskProcesses(2) as cluster:
        train_members(committee, data, Follower(), scheduler=cluster.address, **options)
    assert_undisturbed(committee, data)


def test_no_epoch_that_is_at_home_is_trained_again(tmp_path, data, monkeypatch):
    """Dask alone would go back to the first one, when the only worker is lost."""
    monkeypatch.setattr(chains, "LOOK_SECONDS", 0.05)  # less than a worker takes to start
    committee = make_committee(tmp_path / "c", data, (4,), epochs=24)
    with DaskProcesses(1) as cluster:
        follower = Follower(lambda count: cluster.kill_worker() if count == 8 else None)
        options = {"scheduler": cluster.address, "epochs_per_task": 2}
        train_members(committee, data, follower, **options)
    done = [epoch for _, epoch, _ in follower.epochs]
    assert cluster.killed == 1 and set(done) == set(range(1, 25))
    assert all(done.count(epoch) == 1 for epoch in range(1, 17))
    assert_undisturbed(committee, data)
