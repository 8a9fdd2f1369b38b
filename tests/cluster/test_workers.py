"""Members on workers: the bits of one machine, whatever stops or is lost; which workers train."""

import os
import random
import signal
import socket
import threading

import pytest

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

from distributed import LocalCluster

from dask_processes import DaskProcesses
from mlpcore import InputError, backends
from mlpcore.cluster import check_scheduler, members, segment, train_members
from mlpcore.store.run_folder import LAST
from mlpcore.training.trainer import Diverged
from small_committees import Progress, assert_undisturbed, make_committee
from small_runs import DATA, MODERN, refusal

LONG = bool(os.environ.get("MLPCORE_LONG_TESTS"))


@pytest.fixture(autouse=True)
def one_epoch_a_task(monkeypatch):
    monkeypatch.setattr(members, "TASK_SECONDS", 0)


def cluster_of(n_workers, **options):
    """A cluster whose workers are threads of this process, behind real sockets."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        **options,
    )


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as made:
        yield made


@pytest.fixture
def train(cluster):
    """Trains a committee on the two workers; returns what was told."""

    def run(committee, scheduler=cluster.scheduler_address):
        progress = Progress()
        assert train_members(committee, DATA, progress, scheduler=scheduler) == 0
        return progress

    return run


def test_every_state_is_saved_and_members_have_names_of_their_own(tmp_path, cluster, train):
    progress = train(make_committee(tmp_path / "c", DATA))
    names = "original", "width-2", "width-4"
    assert sorted(progress.epochs) == [(name, epoch) for name in names for epoch in (1, 2, 3)]
    assert progress.notes[0].startswith("dashboard: http://127.0.0.1:")
    on_dashboard = set(cluster.scheduler.task_prefixes)
    assert {"original", "width_2", "width_4"} <= on_dashboard


def test_tasks_take_about_a_minute(tmp_path, train, monkeypatch):
    """The first epoch tells how many of them."""
    monkeypatch.setattr(members, "TASK_SECONDS", 60)
    committee = make_committee(tmp_path / "c", DATA, epochs=5)
    assert sorted(epoch for _, epoch in train(committee).epochs) == [1, 1, 1, 5, 5, 5]
    assert_undisturbed(committee, DATA)


def test_a_signal_stops_and_the_same_call_goes_on(tmp_path, cluster, train):
    committee = make_committee(tmp_path / "c", DATA)
    progress = Progress(lambda count: count == 3 and os.kill(os.getpid(), signal.SIGTERM))
    address = cluster.scheduler_address
    assert train_members(committee, DATA, progress, scheduler=address) == signal.SIGTERM
    assert 3 <= len(progress.epochs) < 9
    epochs = progress.epochs + train(committee).epochs
    assert len(epochs) == len(set(epochs)) == 9
    assert_undisturbed(committee, DATA)


def test_killed_workers_and_a_killed_scheduler_change_no_bit(tmp_path, train):
    """At random places of the training; seven members on two workers."""
    kills, epochs = (20, 30) if LONG else (2, 4)
    committee = make_committee(tmp_path / "c", DATA, (4,), n=7, epochs=epochs)
    results, rng = len(committee.members) * epochs, random.Random(os.getpid())
    # Some results may have come by the time at which the scheduler dies: they must not be the last.
    *places, last = sorted(rng.sample(range(1, results - 14), kills + 1))
    killers = [threading.Timer(rng.random() / 5, lambda: killed.kill_worker()) for _ in places]

    def kill(count):
        if count in places:
            killers[places.index(count)].start()
        elif count == last:
            for killer in killers:
                killer.join()
            killed.scheduler.kill()

    progress = Progress(kill)
    with DaskProcesses(2) as killed, pytest.raises(InputError, match="is lost: what was"):
        train_members(committee, DATA, progress, scheduler=killed.address)
    assert killed.killed == kills
    epochs = progress.epochs + train(committee).epochs
    assert len(epochs) == len(set(epochs)) == results  # none that is saved is trained again
    assert_undisturbed(committee, DATA)


# What is refused


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(members, "CONNECT_SECONDS", 0.1)
    message = refusal(check_scheduler, "tcp://127.0.0.1:1")
    assert message.startswith("no Dask scheduler at tcp://127.0.0.1:1: ")
    assert "address" in refusal(check_scheduler, "nowhere")


def test_what_speaks_another_protocol_is_no_scheduler():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request" + bytes(100))
                connection.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        message = refusal(check_scheduler, address)
        thread.join()
    assert message == f"no Dask scheduler at {address}: another protocol answers"


def cannot_run(name, *arguments):
    raise InputError(f"backend '{name}' cannot run: no device")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("source", lambda: "mlpcore 9.9", "it has mlpcore 9.9, expected mlpcore 0.1.0 of revision"),
        (
            "backends.get",
            cannot_run,
            "cannot run: no device; expected another worker, or --backend",
        ),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_a_worker_of_other_bits(tmp_path, train, monkeypatch, later, name, value, words):
    """Also one that joins later, which is checked by its task."""
    committee = make_committee(tmp_path / "c", DATA)
    monkeypatch.setattr(f"{segment.__name__}.{name}", value)
    if later:
        monkeypatch.setattr(members, "may_train", lambda *arguments: True)
    message = refusal(train, committee)
    assert message.startswith("worker tcp://127.0.0.1:") and words in message
    assert (" cannot train: " in message) != later


def test_a_gpu_is_a_resource(tmp_path, train, monkeypatch):
    """Workers claim to have a GPU, and train with the scalar backend."""
    committee = make_committee(tmp_path / "c", DATA, backend="cuda", schedule=None)
    assert "no worker has the resource GPU" in refusal(train, committee)
    get = backends.get
    monkeypatch.setattr(segment.backends, "get", lambda *arguments: get("scalar", 1))
    with cluster_of(1, resources={"GPU": 1}) as one:
        assert len(train(committee, one.scheduler_address).epochs) == 9
    with pytest.raises(InputError, match=r"^2 workers on the GPU of this machine: expected 1$"):
        train_members(committee, DATA, Progress(), workers=2)


def test_a_training_that_diverges_names_member_and_worker(tmp_path, train):
    committee = make_committee(tmp_path / "c", DATA, **MODERN | {"learning_rate": 1e30})
    with pytest.raises(Diverged, match=r"worker tcp://.*, member .*: training diverged"):
        train(committee)


def test_a_damaged_member_is_named_before_anything_is_trained(tmp_path, train):
    committee = make_committee(tmp_path / "c", DATA)
    train(committee)
    (tmp_path / "c/width-4" / LAST).write_bytes(b"x" * 99)
    before = {path: path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
    assert f"c/width-4/{LAST}" in refusal(train, committee)
    assert before == {path: path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
