"""Members on workers that are killed, and without a scheduler: the bits of one machine."""

import os
import random
import threading

import pytest

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

from dask_processes import DaskProcesses
from mlpcore import backends, dataset
from mlpcore.cluster import LostScheduler, train_members
from mlpcore.store.committee import CommitteeFolder, plan
from mlpcore.training.trainer import Trainer
from small_runs import assert_same_result, load_run, make_config, write_idx

LONG = bool(os.environ.get("MLPCORE_LONG_TESTS"))


class Follower:
    """Counts, and calls a function at every result that has come home."""

    def __init__(self, at_home=lambda count: None):
        self.lines, self.epochs, self.at_home, self.count = [], [], at_home, 0

    def say(self, text):
        self.lines.append(text)

    def epoch(self, *event):
        self.epochs.append(event)

    def home(self, name, state, worker):
        self.count += 1
        self.at_home(self.count)


@pytest.fixture
def data(tmp_path):
    return dataset.load(write_idx(tmp_path / "letters"))


def make_committee(folder, data, widths=(None, 2, 4), n=1, **changes):
    backend = backends.get("auto", 1)
    config = make_config(backend=backend.name, schedule=backend.schedule, **changes)
    return CommitteeFolder.create(folder, data, plan(config, widths, n))


def assert_undisturbed(committee, data):
    """Every state on disk is that of a training by one process, without tasks."""
    for member in committee.members:
        trainer = Trainer(member.config, data, backends.get(member.config.backend, 1))
        assert trainer.run()
        assert_same_result(load_run(committee.run_folder(member)), trainer.state)


def test_killed_workers_and_a_killed_scheduler_change_no_bit(tmp_path, data):
    """Kills at random places of the training; seven members on two workers."""
    kills, epochs = (20, 60) if LONG else (2, 8)
    committee = make_committee(tmp_path / "c", data, (None, 1, 2, 3, 4, 5), epochs=epochs)
    options = {"epochs_per_task": 2}
    results, rng = len(committee.members) * epochs // 2, random.Random(os.getpid())
    *places, last = sorted(rng.sample(range(1, results), kills + 1))
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
