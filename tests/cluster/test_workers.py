"""Which workers train, with which data, and that none waits for the process that collects."""

import asyncio
import dataclasses
import socket
import threading

import pytest

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

from distributed import Future, LocalCluster

from mlpcore import backends, dataset
from mlpcore.cluster import chains, check_scheduler, segment, train_members
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.store.run_folder import LAST
from mlpcore.training.trainer import Diverged
from small_committees import Follower, assert_undisturbed, make_committee
from small_runs import DATA, MODERN, refusal, write_idx


def cluster_of(n_workers, threads_per_worker=1, **options):
    """A cluster whose workers are threads of this process, behind real sockets."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads_per_worker,
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
def data(tmp_path):
    return dataset.load(write_idx(tmp_path / "letters"))


@pytest.fixture
def train(cluster):
    """Trains a committee on the two workers; returns what its follower was told."""

    def run(committee, data, **options):
        follower = Follower()
        options = {"scheduler": cluster.scheduler_address, "epochs_per_task": 2} | options
        assert train_members(committee, data, follower, **options) == 0
        return follower

    return run


def test_every_epoch_is_reported_and_every_result_saved(tmp_path, data, train):
    follower = train(make_committee(tmp_path / "c", data), data)
    names = ["original", "width-2", "width-4"]
    assert sorted(event[:2] for event in follower.epochs) == [
        (name, epoch) for name in names for epoch in (1, 2, 3)
    ]
    assert follower.count == 6  # 2 epochs, then the last one
    assert follower.lines[0].startswith("dashboard: http://127.0.0.1:")


def test_without_a_number_of_epochs_tasks_take_about_a_minute(tmp_path, data, train):
    committee = make_committee(tmp_path / "c", data, epochs=5)
    assert train(committee, data, epochs_per_task=None).count == 3
    assert_undisturbed(committee, data)


def test_no_worker_waits_for_the_client(tmp_path, data):
    """Twenty slow links: no result comes home before all tasks of all members are done."""
    committee = make_committee(tmp_path / "c", data, (None, 2, 3, 4), n=5, epochs=4)
    with cluster_of(20) as cluster:
        gather, held = cluster.scheduler.handlers["gather"], []

        async def slow_gather(**arguments):
            tasks = cluster.scheduler.tasks
            while sum(task.state == "memory" for task in tasks.values()) < 40 and not held:
                await asyncio.sleep(0.02)
            held.append(len(tasks))
            return await gather(**arguments)

        cluster.scheduler.handlers["gather"] = slow_gather
        options = {"scheduler": cluster.scheduler_address, "epochs_per_task": 2}
        assert train_members(committee, data, Follower(), **options) == 0
    assert held[0] == 40  # twenty members, two tasks each
    assert_undisturbed(committee, data)


def test_a_fetch_that_ends_with_anothers_begins_again(tmp_path, data, train, monkeypatch):
    """Dask fetches several results at once: the end of one may cancel the others."""
    result, ended = Future.result, set()

    async def cancelled_once(future):
        if future.key not in ended:
            ended.add(future.key)
            raise asyncio.CancelledError
        return await result(future)

    monkeypatch.setattr(Future, "result", cancelled_once)
    committee = make_committee(tmp_path / "c", data)
    assert train(committee, data).count == len(ended) == 6
    assert_undisturbed(committee, data)


# Workers that do not fit


def test_a_scheduler_that_is_not_there(monkeypatch):
    monkeypatch.setattr(chains, "CONNECT_SECONDS", 0.5)
    message = refusal(check_scheduler, "tcp://127.0.0.1:1")
    assert message.startswith("no Dask scheduler at tcp://127.0.0.1:1: ")
    assert "address" in refusal(check_scheduler, "nowhere")


def test_what_speaks_another_protocol_is_no_scheduler(monkeypatch):
    monkeypatch.setattr(chains, "CONNECT_SECONDS", 5)
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


ENVIRONMENT = segment.environment()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "9.9"}, " has mlpcore 0.1.0, expected 9.9"),
        ({"revision": "abc"}, "of mlpcore, expected abc"),
    ],
)
def test_another_version_is_refused_before_anything_is_trained(
    tmp_path, data, train, monkeypatch, change, words
):
    mine = dataclasses.replace(ENVIRONMENT, **change)
    monkeypatch.setattr(chains, "environment", lambda: mine)
    committee = make_committee(tmp_path / "c", data)
    message = refusal(train, committee, data)
    assert message.startswith("worker tcp://127.0.0.1:") and words in message
    assert not committee.run_folder(committee.members[0]).exists()


@pytest.fixture
def poorer(monkeypatch):
    """Workers that lack the instruction set of this machine."""
    best = backends.get("cpu").name
    rest = tuple(name for name in ENVIRONMENT.backends if name != best)
    theirs = dataclasses.replace(ENVIRONMENT, backends=rest)
    monkeypatch.setattr(segment, "environment", lambda: theirs)
    monkeypatch.setattr(chains, "described", lambda: (theirs, False))
    return best


def test_another_instruction_set_is_refused(tmp_path, data, train, poorer):
    assert f"cannot run {poorer}: expected" in refusal(
        train, make_committee(tmp_path / "c", data), data
    )


def test_another_instruction_set_is_allowed_and_the_run_says_so(tmp_path, data, train, poorer):
    committee = make_committee(tmp_path / "c", data)
    lines = train(committee, data, mixed=True).lines
    assert any(f"2 of 2 workers cannot run {poorer}" in line for line in lines)


def test_a_worker_that_joins_later_is_checked_by_its_task(tmp_path, data, train, monkeypatch):
    other = dataclasses.replace(ENVIRONMENT, version="9.9")
    monkeypatch.setattr(segment, "environment", lambda: other)
    monkeypatch.setattr(chains, "described", lambda: (ENVIRONMENT, False))
    message = refusal(train, make_committee(tmp_path / "c", data), data)
    assert message.startswith("worker tcp://") and "has mlpcore 9.9, expected" in message


def on_gpu(committee, schedule):
    """A committee whose members want a GPU, written to its folder."""
    members = [
        dataclasses.replace(
            each, config=dataclasses.replace(each.config, backend="cuda", schedule=schedule)
        )
        for each in committee.members
    ]
    committee = dataclasses.replace(committee, members=tuple(members))
    committee.write()
    return committee


def claim_gpu(monkeypatch, begin=lambda: None):
    """Lets workers claim to have a GPU, and train with the scalar backend; `begin` is called."""
    has = dataclasses.replace(ENVIRONMENT, backends=("cuda",))
    monkeypatch.setattr(segment, "environment", lambda: has)
    get = backends.get

    def scalar(*arguments):
        begin()
        return get("scalar", 1)

    monkeypatch.setattr(segment.backends, "get", scalar)


def test_a_gpu_is_a_resource(tmp_path, data, train, monkeypatch):
    committee = on_gpu(make_committee(tmp_path / "c", data), None)
    assert "no worker has the resource GPU" in refusal(train, committee, data)
    claim_gpu(monkeypatch)
    with cluster_of(1, resources={"GPU": 1}) as one:
        assert train(committee, data, scheduler=one.scheduler_address).count == 6


def test_several_members_share_a_gpu(tmp_path, data, train, monkeypatch):
    committee = on_gpu(make_committee(tmp_path / "c", data, widths=[None, 2]), "resident-2")
    both = threading.Barrier(2)
    claim_gpu(monkeypatch, lambda: both.wait(60))  # broken unless two tasks run at once
    with cluster_of(1, threads_per_worker=4, resources={"GPU": 1}) as one:
        train(committee, data, scheduler=one.scheduler_address, epochs_per_task=3)


def test_the_gpu_of_this_machine_has_one_worker(tmp_path, data):
    committee = on_gpu(make_committee(tmp_path / "c", data), "resident-8")
    with pytest.raises(InputError, match=r"^2 workers on the GPU of this machine: expected 1$"):
        train_members(committee, data, Follower(), workers=2)


# Data


def test_data_that_workers_lack_are_sent_once(tmp_path, train):
    committee = make_committee(tmp_path / "c", DATA)
    assert any("the data are sent" in line for line in train(committee, DATA).lines)
    assert_undisturbed(committee, DATA)


def test_a_worker_refuses_other_data(tmp_path, data):
    summary = DataSummary.of(data)
    write_idx(tmp_path / "letters", n_train=231)
    segment.load_data.cache_clear()
    assert "are others: expected letters" in segment.missing_data(summary)


def test_a_training_that_diverges_names_member_and_worker(tmp_path, data, train):
    committee = make_committee(tmp_path / "c", data, **MODERN | {"learning_rate": 1e30})
    with pytest.raises(Diverged, match=r"worker tcp://.*, member .*: training diverged"):
        train(committee, data)


def test_a_damaged_member_is_named_before_anything_is_trained(tmp_path, data, train):
    committee = make_committee(tmp_path / "c", data)
    train(committee, data)
    (tmp_path / "c/width-4" / LAST).write_bytes(b"x" * 99)
    before = {path: path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
    assert f"c/width-4/{LAST}" in refusal(train, committee, data)
    assert before == {path: path.read_bytes() for path in (tmp_path / "c").rglob("*.*")}
