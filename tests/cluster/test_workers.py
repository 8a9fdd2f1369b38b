"""Members on workers: the bits of one machine, whatever stops or is lost; which workers train."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
from subprocess import DEVNULL
from unittest.mock import Mock

import pytest

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

from distributed import LocalCluster

from mlpcore import InputError, backends
from mlpcore.cluster import check_scheduler, members, segment, train_members
from mlpcore.data.summary import DataSummary
from mlpcore.store.committee import CommitteeFolder, plan
from mlpcore.training.trainer import Diverged
from small_runs import DATA, MODERN, assert_same_result, load_run, make_config, refusal, train


class Progress:
    """Keeps what it is told, and calls a function whenever a state is saved."""

    def __init__(self, on_saved=lambda count: None):
        self.notes, self.epochs, self.on_saved = [], [], on_saved

    def print(self, text):
        self.notes.append(text)

    def saved(self, name, state, worker):
        self.epochs.append((name, state.epoch))
        self.on_saved(len(self.epochs))


def make_committee(folder, n=3, **changes):
    backend = backends.get("auto", 1)
    changes = {"backend": backend.name, "schedule": backend.schedule} | changes
    committee = CommitteeFolder(folder, DataSummary.of(DATA), plan([make_config(**changes)], n))
    with committee.locked():
        pass
    return committee


def assert_undisturbed(committee):
    """Every state on disk is that of a training by one process, without tasks."""
    for member in committee.members:
        expected = train(member.config, backends.get(member.config.backend, 1))
        assert_same_result(load_run(committee.run_folder(member)), expected)


@pytest.fixture(autouse=True)
def one_epoch_a_task(monkeypatch):
    monkeypatch.setattr(members, "TASK_SECONDS", 0)


#: A cluster whose workers are threads of this process, behind real sockets.
CLUSTER = {"threads_per_worker": 1, "processes": False, "protocol": "tcp"}
CLUSTER |= {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, **CLUSTER) as made:
        yield made


def train_there(committee, cluster):
    """Trains a committee on two workers; returns what was told."""
    progress = Progress()
    assert train_members(committee, DATA, progress, scheduler=cluster.scheduler_address) == 0
    return progress


def test_tasks_take_about_a_minute(tmp_path, cluster, monkeypatch):
    """The first epoch tells how many of them. Members have names of their own on the dashboard."""
    monkeypatch.setattr(members, "TASK_SECONDS", 60)
    committee = make_committee(tmp_path / "c", epochs=5)
    progress, names = train_there(committee, cluster), ("9-6-1", "9-6-2", "9-6-3")
    assert sorted(progress.epochs) == [(name, epoch) for name in names for epoch in (1, 5)]
    assert progress.notes[0].startswith("dashboard: http://127.0.0.1:")
    assert {"9_6_1", "9_6_2", "9_6_3"} <= set(cluster.scheduler.task_prefixes)
    assert_undisturbed(committee)


def test_a_signal_stops_and_the_same_call_goes_on(tmp_path, cluster):
    committee = make_committee(tmp_path / "c")
    progress = Progress(lambda count: count == 3 and os.kill(os.getpid(), signal.SIGTERM))
    address = cluster.scheduler_address
    assert train_members(committee, DATA, progress, scheduler=address) == signal.SIGTERM
    assert 3 <= len(progress.epochs) < 9
    epochs = progress.epochs + train_there(committee, cluster).epochs
    assert len(epochs) == len(set(epochs)) == 9
    assert_undisturbed(committee)


@pytest.fixture
def dask():
    """Starts processes of Dask on this machine, which are killed at the end."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *arguments, "--host=127.0.0.1", "--no-dashboard"]
        started.append(subprocess.Popen(command, stdout=DEVNULL, stderr=DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_killed_worker_and_a_killed_scheduler_change_no_bit(tmp_path, dask, cluster, monkeypatch):
    """At random places of the training; seven members on two workers."""
    monkeypatch.setattr(members, "CONNECT_SECONDS", 60)  # processes take their time to start
    committee = make_committee(tmp_path / "c", n=7, epochs=4)
    rng = random.Random(os.getpid())
    # Some results may have come by the time at which the scheduler dies: they must not be the last.
    first, last = sorted(rng.sample(range(1, 28 - 14), 2))
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = dask("scheduler", f"--port={port}")
    worker = "worker", address, "--nthreads=1", "--no-nanny"
    first_worker, _ = dask(*worker), dask(*worker)

    def replace_worker():
        first_worker.kill()
        dask(*worker)

    killer = threading.Timer(rng.random() / 5, replace_worker)

    def kill(count):
        if count == first:
            killer.start()
        elif count == last:
            killer.join()
            scheduler.kill()

    progress = Progress(kill)
    with pytest.raises(InputError, match="is lost: what was"):
        train_members(committee, DATA, progress, scheduler=address)
    epochs = progress.epochs + train_there(committee, cluster).epochs
    assert len(epochs) == len(set(epochs)) == 28  # none that is saved is trained again
    assert_undisturbed(committee)


def test_a_scheduler_that_is_not_there(cluster, monkeypatch):
    check_scheduler(cluster.scheduler_address)
    monkeypatch.setattr(members, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert refusal(check_scheduler, silent).startswith(f"no Dask scheduler at {silent}: ")
        # Another protocol's first bytes would be a length of a message.
        monkeypatch.setattr(members.distributed.comm, "connect", Mock(side_effect=MemoryError))
        assert refusal(check_scheduler, silent).endswith(": no answer of one within 0.1 seconds")
    assert refusal(check_scheduler, silent).startswith(f"no Dask scheduler at {silent}: [Errno")


OTHERS = [
    ("source", lambda: "mlpcore 9.9", "it has mlpcore 9.9, expected mlpcore 0.1.0 of revision"),
    ("backends.get", Mock(side_effect=InputError("no")), "no; expected another worker, or another"),
]


@pytest.mark.parametrize(("name", "value", "words"), OTHERS)
def test_a_worker_of_other_bits(tmp_path, cluster, monkeypatch, name, value, words):
    committee = make_committee(tmp_path / "c")
    monkeypatch.setattr(f"{segment.__name__}.{name}", value)
    message = refusal(train_there, committee, cluster)
    assert message.startswith("worker tcp://127.0.0.1:") and words in message


def test_a_gpu_is_a_resource(tmp_path, cluster, monkeypatch):
    """Workers claim to have a GPU, and train with the scalar backend."""
    committee = make_committee(tmp_path / "c", backend="cuda", schedule=None)
    assert "no worker has the resource GPU" in refusal(train_there, committee, cluster)
    get = backends.get
    monkeypatch.setattr(segment.backends, "get", lambda *arguments: get("scalar", 1))
    with LocalCluster(n_workers=1, resources={"GPU": 1}, **CLUSTER) as one:
        assert len(train_there(committee, one).epochs) == 9
    with pytest.raises(InputError, match=r"^2 workers on the GPU of this machine: expected 1$"):
        train_members(committee, DATA, Progress(), workers=2)


def test_a_training_that_diverges_names_member_and_worker(tmp_path, cluster):
    committee = make_committee(tmp_path / "c", **MODERN | {"learning_rate": 1e30})
    with pytest.raises(Diverged, match=r"worker tcp://.*, member .*: training diverged"):
        train_there(committee, cluster)
