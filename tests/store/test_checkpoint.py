"""Runs on disk: exact round trips, resume after a kill anywhere, damage, full disks."""

import dataclasses
import errno
import fcntl
import json
import math
import os
import pickle
import resource
import stat
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from mlpcore import backends, files
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.store import provenance, weights
from mlpcore.store.run_folder import (
    BEST,
    CONFIG,
    LAST,
    METRICS,
    Run,
    check_output,
    read_history,
    read_settings,
    weights_file,
)
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.trainer import Trainer, TrainingState
from small_runs import (
    assert_same_result,
    make_config,
    make_dataset,
    run_with_stop,
    same_weights,
    without_times,
)

DATA = make_dataset()
CONFIG_3 = make_config()
fuzz = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def message(call, *args, **kwargs):
    """The one line with which a call must refuse its input."""
    with pytest.raises(InputError) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def start(folder, config=CONFIG_3, data=DATA, state=None):
    """A trainer that writes to a new folder."""
    trainer = Trainer(config, data, backends.get(), state=state)
    run = Run.create(folder, config, data, trainer.backend.description, trainer.state)
    trainer.observers = (run,)
    return trainer, run


def resume(folder):
    """The state after going on to the end, and the run."""
    run = Run.open(folder)
    try:
        run.check_data(DATA)
        trainer = Trainer(run.config, DATA, backends.get(), [run], run.load())
        assert trainer.run() is True
    finally:
        run.close()
    return trainer.state


def finished(folder, **changes):
    """The state of a run that has been trained to its end."""
    trainer, run = start(folder, make_config(**changes))
    assert trainer.run() is True
    run.close()
    return trainer.state


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def network_file(tmp_path):
    path = tmp_path / "network.safetensors"
    write_network(path, Network((4, 3, 2), 1), {"epoch": "7"})
    return path


class Killed(BaseException):
    """Ends everything on the spot."""


# Networks


@fuzz
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(0, 2**64 - 1))
def test_networks_survive_files(tmp_path, sizes, seed):
    network, path = Network(sizes, seed), tmp_path / "n.safetensors"
    write_network(path, network, {"epoch": "7"})
    read, metadata = read_network(path, tuple(sizes))
    assert same_weights(network, read)
    assert metadata["epoch"] == "7"
    assert metadata["architecture"] == ",".join(map(str, sizes))
    assert os.listdir(tmp_path) == [path.name]


def test_other_programs_can_read_the_weights(network_file):
    tensors, network = load(network_file.read_bytes()), Network((4, 3, 2), 1)
    names = [f"layers.{i}.{kind}" for i in (0, 1) for kind in ("bias", "weight")]
    assert sorted(tensors) == names
    for i in (0, 1):
        np.testing.assert_array_equal(tensors[f"layers.{i}.weight"], network.weights[i])
        np.testing.assert_array_equal(tensors[f"layers.{i}.bias"], network.biases[i])


@fuzz
@given(st.data())
def test_every_flipped_bit_is_noticed(network_file, data):
    content = bytearray(network_file.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    damaged = network_file.with_name("damaged")
    damaged.write_bytes(content)
    assert str(damaged) in message(read_network, damaged)


@fuzz
@given(st.data())
def test_every_other_length_is_noticed(network_file, data):
    content = network_file.read_bytes()
    kept = content[: data.draw(st.integers(0, len(content)))]
    content = kept + data.draw(st.binary(min_size=kept == content, max_size=40))
    if content == network_file.read_bytes():
        return
    damaged = network_file.with_name("damaged")
    damaged.write_bytes(content)
    message(read_network, damaged)


@fuzz
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_network(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    message(read_network, path)


def header_of(n_bytes):
    return struct.pack("<Q", n_bytes)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds 0 bytes"),
        (header_of(2**63), "truncated"),
        (header_of(100) + b"{}", "truncated"),
        (header_of(2) + b"[]", "not a readable"),
        (header_of(2) + b"{}", "metadata do not say so"),
        (header_of(20000) + b"[" * 20000, "not a readable"),
        (pickle.dumps({"layers.0.weight": 1}), "truncated"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "truncated"),
    ],
)
def test_files_that_are_no_network(tmp_path, content, words):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert words in message(read_network, path)


def test_a_huge_header_takes_no_memory(tmp_path):
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.write(header_of(2**35))
        file.truncate(2**36)
    assert "16,777,216 bytes" in message(read_network, path)


def test_a_huge_architecture_takes_no_memory(tmp_path):
    path = tmp_path / "x"
    metadata = {"format": weights.FORMAT, "architecture": "999999,999999,10"}
    path.write_bytes(save({"layers.0.bias": np.zeros(3, np.float32)}, metadata))
    assert "4,000,0" in message(read_network, path)


@pytest.mark.parametrize("text", ["", "4", "4,", "4,x,2", "-4,2", "4,3.0", "²,2", "9" * 50])
def test_metadata_without_layer_sizes(tmp_path, text):
    path = tmp_path / "x"
    path.write_bytes(save({}, {"format": weights.FORMAT, "architecture": text}))
    assert "layer sizes" in message(read_network, path)


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("layers.0.weight", np.zeros((3, 2), np.float32)),
        ("layers.0.weight", np.zeros((2, 3), np.int32)),
        ("layers.0.weights", np.zeros((2, 3), np.float32)),
    ],
)
def test_tensors_of_another_name_shape_or_type(tmp_path, name, tensor):
    path = tmp_path / "x"
    metadata = {"format": weights.FORMAT, "architecture": "3,2"}
    path.write_bytes(save({name: tensor, "layers.0.bias": np.zeros(2, np.float32)}, metadata))
    assert "layers.0.weight" in message(read_network, path)


def test_another_architecture(network_file):
    assert "of 4-3-2, expected 4-5-2" in message(read_network, network_file, (4, 5, 2))


def test_weights_that_are_not_finite(tmp_path):
    network, path = Network((2, 2)), tmp_path / "x"
    network.weights[0][0, 0] = np.inf
    write_network(path, network, {})
    assert "not finite" in message(read_network, path)


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in message(read_network, tmp_path / "pipe")
    assert "not a regular file" in message(read_network, tmp_path)
    assert "No such file" in message(read_network, tmp_path / "none")
    assert "zero byte" in message(read_network, tmp_path / "\0")


# Full disks


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_only_files_are_replaced(tmp_path):
    """Not a device, for which a pipe stands here, and not a folder."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        assert "expected a file or a new name" in message(files.atomic_write, path, b"x")
        assert "expected a file or a new name" in message(files.check_replaceable, path)
    assert os.listdir(tmp_path) == ["pipe"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_checking_a_file_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    files.check_replaceable(path)
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"x")
    files.check_replaceable(path)
    assert os.listdir(tmp_path) == ["file"] and path.read_bytes() == b"x"
    assert "No such file" in message(files.check_replaceable, tmp_path / "none" / "file")


def test_several_may_write_a_file_at_once(tmp_path, monkeypatch):
    """The second begins when all of the first is written but its name."""
    path, fsync, contents = tmp_path / "file", os.fsync, []

    def write_another(descriptor):
        monkeypatch.setattr(os, "fsync", fsync)
        files.check_replaceable(path)
        files.atomic_write(path, b"second")
        contents.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", write_another)
    files.atomic_write(path, b"first")
    assert [*contents, path.read_bytes()] == [b"second", b"first"]
    assert os.listdir(tmp_path) == ["file"]


def test_files_have_the_mode_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    files.atomic_write(tmp_path / "ours", b"x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(network_file, monkeypatch, call):
    before = network_file.read_bytes()
    monkeypatch.setattr(os, call, full)
    text = message(write_network, network_file, Network((4, 3, 2), 2), {})
    assert text == f"cannot write {network_file}: No space left on device"
    assert network_file.read_bytes() == before
    assert os.listdir(network_file.parent) == [network_file.name]


def test_a_real_limit_keeps_the_old_file(network_file):
    before = network_file.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        text = message(write_network, network_file, Network((40, 30, 20), 2), {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(network_file) in text
    assert network_file.read_bytes() == before
    assert os.listdir(network_file.parent) == [network_file.name]


def test_a_full_disk_at_the_start_leaves_nothing(tmp_path, monkeypatch):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:  # settings and their folder are written, the network is not
            full()

    monkeypatch.setattr(os, "fsync", fsync)
    assert LAST in message(start, tmp_path / "runs" / "x")
    assert os.listdir(tmp_path) == []


def test_a_full_disk_at_an_epochs_end_keeps_the_epoch_before(tmp_path, monkeypatch, uninterrupted):
    trainer, run = start(tmp_path / "run")
    write = os.fsync

    def fsync(descriptor):
        if trainer.state.epoch == 2:
            full()
        write(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    message(trainer.run)
    monkeypatch.undo()
    run.close()
    assert sorted(os.listdir(run.folder)) == sorted([CONFIG, METRICS, BEST, LAST])
    assert_same_result(uninterrupted, resume(run.folder))


# Output folders


@pytest.mark.parametrize("name", [CONFIG, METRICS, BEST, LAST])
def test_a_folder_that_holds_a_run(tmp_path, name):
    (tmp_path / name).touch()
    assert "already holds a run" in message(check_output, tmp_path)


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (
        tmp_path / "file",
        tmp_path / "file" / "run",
        Path("/proc/run"),
        tmp_path / ("x" * 300),
        tmp_path / "\0",
    ):
        message(check_output, path)
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_refuses_files(tmp_path, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.tempfile, "mkdtemp", denied)
    text = message(check_output, tmp_path / "a" / "b")
    assert text == f"cannot write to {tmp_path / 'a' / 'b'}: Permission denied"
    assert os.listdir(tmp_path) == []


def test_checking_leaves_nothing_and_spares_other_files(tmp_path):
    (tmp_path / "notes").touch()
    check_output(tmp_path)
    check_output(tmp_path / "a" / "b")
    assert os.listdir(tmp_path) == ["notes"]


def test_one_process_at_a_time(tmp_path):
    _, run = start(tmp_path / "run")
    assert "in use" in message(Run.open, tmp_path / "run")
    run.close()
    Run.open(tmp_path / "run").close()


def test_only_who_has_a_run_removes_what_was_left_of_its_files(tmp_path):
    _, run = start(tmp_path / "run")
    left, other = (run.folder / f".{name}.0a1b2c3d.tmp" for name in (LAST, "picture.png"))
    left.touch()
    other.touch()
    assert "in use" in message(Run.open, run.folder)
    Run.open(run.folder, to_train=False)
    assert left.exists()
    run.close()
    Run.open(run.folder).close()
    assert not left.exists() and other.exists()


def test_a_look_at_a_lock_does_not_take_it(tmp_path, monkeypatch):
    """Nor for the moment that it lasts."""
    looking = [os.open(tmp_path, os.O_RDONLY)]
    fcntl.flock(looking[0], fcntl.LOCK_SH)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: os.close(looking.pop()))
    os.close(files.lock(tmp_path))
    assert looking == []


# Runs


def test_another_process_may_read_a_run_in_use(tmp_path, uninterrupted):
    folder = tmp_path / "run"
    trainer, run = start(folder)
    assert "expected a run of at least one epoch" in message(weights_file, folder)
    trainer.run()
    before = {path: path.read_bytes() for path in folder.iterdir()}
    config, data = read_settings(folder)
    assert (config, data) == (CONFIG_3, DataSummary.of(DATA))
    assert without_times(read_history(folder)) == without_times(uninterrupted.history)
    assert weights_file(folder) == folder / BEST
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    run.close()


def test_a_path_that_is_no_run_stands_for_itself(tmp_path):
    assert weights_file(tmp_path / "none") == tmp_path / "none"
    assert f"holds no {BEST}" in message(weights_file, tmp_path)
    assert CONFIG in message(read_settings, tmp_path)
    assert METRICS in message(read_history, tmp_path)
    (tmp_path / METRICS).write_bytes(b'{"epoch": 1}\n')
    assert "expected metrics of epochs" in message(read_history, tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": 2},
        {"epoch": 1.0},
        {"n_train": 0},
        {"n_train": 10**400},
        {"n_test": -1},
        {"training_errors": 231},
        {"validation_errors": -1},
        {"test_errors": 61},
        {"test_errors": 0.5},
        {"learning_rate": 0},
        {"learning_rate": math.nan},
        {"learning_rate": 10**400},
        {"loss": math.inf},
        {"loss": "1"},
        {"loss": None},
    ],
)
def test_metrics_out_of_range(tmp_path, uninterrupted, changes):
    values = dataclasses.asdict(uninterrupted.history[0])
    path = tmp_path / METRICS
    path.write_text(json.dumps(values))
    assert read_history(tmp_path) == uninterrupted.history[:1]
    path.write_text(json.dumps(values | changes))
    assert "expected metrics of epochs" in message(read_history, tmp_path)


def test_a_run_is_complete_on_disk(tmp_path, uninterrupted):
    state = finished(tmp_path / "run")
    assert sorted(os.listdir(tmp_path / "run")) == sorted([CONFIG, METRICS, BEST, LAST])
    assert_same_result(uninterrupted, state)
    run = Run.open(tmp_path / "run")
    assert run.config == CONFIG_3
    loaded = run.load()
    run.close()
    assert_same_result(state, loaded)
    assert loaded.history == state.history
    config = json.loads((tmp_path / "run" / CONFIG).read_text())
    assert config["training"]["seed"] == 5
    assert config["data"]["sha256"] == DataSummary.of(DATA).sha256
    assert config["backend"] == backends.get().description
    lines = [json.loads(x) for x in (tmp_path / "run" / METRICS).read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert [line["test_error"] for line in lines] == [round(m.test_error, 4) for m in state.history]


@pytest.mark.parametrize(("epoch", "samples"), [(0, 0), (0, 64), (1, 0), (2, 224)])
def test_resume_from_disk_equals_uninterrupted(tmp_path, uninterrupted, epoch, samples):
    trainer = Trainer(CONFIG_3, DATA, backends.get())
    run = Run.create(tmp_path / "run", CONFIG_3, DATA, "", trainer.state)
    stopped = run_with_stop(CONFIG_3, DATA, backends.get(), epoch, samples, [run])
    run.close()
    before = stopped.state.seconds
    state = resume(tmp_path / "run")
    assert_same_result(uninterrupted, state)
    assert state.seconds > before
    finished_run = Run.open(tmp_path / "run")
    assert_same_result(uninterrupted, finished_run.load())
    finished_run.close()


@pytest.mark.parametrize("leave_temporary", [False, True])
@pytest.mark.parametrize("kill_at", range(12))
def test_resume_after_a_kill_at_any_file(
    tmp_path, monkeypatch, uninterrupted, kill_at, leave_temporary
):
    """Dies before the n-th file takes its place, or with that file only half written."""
    replace, done, runs = os.replace, [], []

    def dying_replace(source, target):
        if len(done) == kill_at:
            if leave_temporary:
                os.truncate(source, os.path.getsize(source) // 2)
            raise Killed
        done.append(target)
        replace(source, target)

    trainer, run = start(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying_replace)
        if leave_temporary:
            patch.setattr(os, "remove", lambda path: None)
        try:
            trainer.run()
        except Killed:
            runs.append("killed")
    run.close()
    # 3 epochs of metrics and last, and best at each improvement
    assert bool(runs) == (kill_at < 6 + uninterrupted_improvements(uninterrupted))
    assert_same_result(uninterrupted, resume(tmp_path / "run"))
    assert sorted(os.listdir(tmp_path / "run")) == sorted([CONFIG, METRICS, BEST, LAST])


def uninterrupted_improvements(state):
    errors = [m.validation_errors for m in state.history]
    return sum(e < min(errors[:i], default=999) for i, e in enumerate(errors))


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("interrupted_at", range(7))
def test_a_save_that_is_interrupted_is_made_up_for(
    tmp_path, monkeypatch, uninterrupted, interrupted_at, killed
):
    """By the same trainer's next one, which may be killed before any of its files."""
    replace, saved = os.replace, []

    def interrupted(source, target):
        saved.append(target)
        if len(saved) == interrupted_at + 1:
            raise KeyboardInterrupt
        if killed and len(saved) == interrupted_at + 4:
            raise Killed
        replace(source, target)

    trainer, run = start(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
        try:
            trainer.run()
        except Killed:
            assert killed
    run.close()
    if not killed:
        assert_same_result(uninterrupted, trainer.state)
    assert_same_result(uninterrupted, resume(tmp_path / "run"))
    assert read_history(tmp_path / "run")[-1].epoch == 3


def test_a_stop_saves_what_an_interrupted_save_did_not(tmp_path, monkeypatch):
    trainer, run = start(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        message(trainer.run)
    trainer.request_stop()
    assert trainer.run() is False
    assert read_history(run.folder) == trainer.state.history
    assert same_weights(read_network(run.folder / BEST)[0], trainer.state.best)
    run.close()


def test_every_revision_that_computed_a_run_is_named(tmp_path, monkeypatch):
    _, run = start(tmp_path / "run", make_config(epochs=9))
    run.close()
    run_epoch = Trainer._run_epoch

    def go_on(revision, epochs):
        """What the last network names after so many epochs more."""
        monkeypatch.setattr(provenance, "revision", lambda: revision)
        run = Run.open(tmp_path / "run")
        trainer = Trainer(run.config, DATA, backends.get(), [run], run.load())
        until = trainer.state.epoch + epochs

        def run_until(self):
            run_epoch(self)
            if self.state.epoch == until:
                self.request_stop()

        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_run_epoch", run_until)
            if not epochs:
                trainer.request_stop()
            trainer.run()
        run.close()
        return json.loads(read_network(run.folder / LAST)[1]["revisions"])

    assert go_on("z", 0) == []
    assert go_on("a", 2) == [[1, "a"]]
    assert go_on("a", 1) == [[1, "a"]]
    assert go_on("b", 0) == [[1, "a"]]
    assert go_on("", 1) == [[1, "a"], [4, ""]]
    network, metadata = read_network(tmp_path / "run" / LAST)
    del metadata["revisions"]  # as an earlier version wrote it
    write_network(tmp_path / "run" / LAST, network, metadata | {"revision": "c"})
    assert go_on("d", 2) == [[1, "c"], [5, "d"]]


def test_a_run_killed_before_its_first_network(tmp_path, uninterrupted):
    _, run = start(tmp_path / "run")
    run.close()
    (tmp_path / "run" / LAST).unlink()
    assert_same_result(uninterrupted, resume(tmp_path / "run"))


def test_a_diverged_run_keeps_its_last_good_weights(tmp_path):
    trainer, run = start(tmp_path / "run")

    def train(network, images, labels, order, learning_rate, progress=None, target=1.0):
        if trainer.state.epoch == 1:
            network.weights[0][0, 0] = np.nan
        result = backends.TrainingResult(len(order), 0, 1.0)
        progress(result)
        return result

    trainer.backend.train = train
    assert "epoch 2" in message(trainer.run)
    loaded = run.load()
    run.close()
    assert loaded.epoch == 1
    assert loaded.network.is_finite()


# Runs that are damaged


@pytest.fixture
def stopped(tmp_path):
    """A folder with a run that has stopped in its third epoch."""
    trainer = Trainer(CONFIG_3, DATA, backends.get())
    run = Run.create(tmp_path / "run", CONFIG_3, DATA, "", trainer.state)
    run_with_stop(CONFIG_3, DATA, backends.get(), 2, 64, [run])
    run.close()
    return tmp_path / "run"


def refusal(folder):
    """Why a run cannot go on."""

    def attempt():
        run = Run.open(folder)
        try:
            run.load()
        finally:
            run.close()

    return message(attempt)


def edit_config(folder, change):
    content = json.loads((folder / CONFIG).read_text())
    change(content)
    (folder / CONFIG).write_text(json.dumps(content))


@pytest.mark.parametrize("name", [CONFIG, METRICS, BEST, LAST])
def test_a_file_that_is_missing_empty_or_a_folder(stopped, name):
    content = (stopped / name).read_bytes()
    (stopped / name).unlink()
    assert name in refusal(stopped)
    (stopped / name).touch()
    assert name in refusal(stopped)
    (stopped / name).write_bytes(content[: len(content) // 2])
    assert name in refusal(stopped)
    (stopped / name).unlink()
    (stopped / name).mkdir()
    assert name in refusal(stopped)


def test_another_architecture_in_the_settings(stopped):
    edit_config(stopped, lambda c: c["training"].update(hidden_layers=[9, 7]))
    assert "holds a network of 35-9-6-3, expected 35-9-7-3" in refusal(stopped)


def test_other_settings(stopped):
    edit_config(stopped, lambda c: c["training"].update(seed=6))
    assert "other settings" in refusal(stopped)


def test_edited_metrics(stopped):
    text = (stopped / METRICS).read_text()
    (stopped / METRICS).write_text(text.replace('"test_errors": ', '"test_errors": 1', 1))
    assert METRICS in refusal(stopped)


@pytest.mark.parametrize("name", [BEST, LAST, METRICS])
def test_files_of_another_run(stopped, tmp_path, name):
    finished(tmp_path / "other", epochs=2, seed=6)
    (tmp_path / "other" / name).replace(stopped / name)
    assert name in refusal(stopped)


def test_other_data(stopped):
    run = Run.open(stopped)
    other = make_dataset(n_test=59)
    text = message(run.check_data, other)
    run.close()
    assert "nowhere are not those" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": "-1"},
        {"epoch": "4"},
        {"epoch": "x"},
        {"best_epoch": "9"},
        {"progress": "[" * 100_000},
        {"progress": "{}"},
        {"training": "{}"},
        {"metrics_sha256": "0"},
        {"revisions": "{}"},
        {"revisions": "[[true, 1]]"},
        {"revisions": "[[1]]"},
        {"progress": '{"samples": 231, "errors": 0, "loss": 0}'},
    ],
)
def test_metadata_that_make_no_sense(stopped, changes):
    """With a checksum that fits: nobody's accident, but still one line."""
    network, metadata = read_network(stopped / LAST)
    write_network(stopped / LAST, network, metadata | changes)
    assert "damaged" in refusal(stopped)


@pytest.mark.parametrize("samples", [-1, 231, 1.5, True, "1", None])
def test_a_place_outside_the_epoch(stopped, samples):
    network, metadata = read_network(stopped / LAST)
    progress = json.loads(metadata["progress"]) | {"samples": samples}
    write_network(stopped / LAST, network, metadata | {"progress": json.dumps(progress)})
    assert "damaged" in refusal(stopped)


@fuzz
@given(st.data())
def test_damaged_settings_and_metrics_are_refused_or_read(tmp_path, data):
    folder = tmp_path / "run"
    if not folder.exists():
        finished(folder, epochs=1)
    name = data.draw(st.sampled_from([CONFIG, METRICS]))
    content = (folder / name).read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[position : position + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    (folder / name).write_bytes(damaged)
    try:
        run = Run.open(folder)
        try:
            assert isinstance(run.load(), TrainingState)
        finally:
            run.close()
    except InputError as error:
        assert "\n" not in str(error)
    finally:
        (folder / name).write_bytes(content)


def test_best_and_last_may_differ(tmp_path):
    """The best network on disk is that of its epoch, not the last one."""
    state = finished(tmp_path / "run", epochs=4, learning_rate=0.3, learning_rate_end=0.3)
    best, metadata = read_network(tmp_path / "run" / BEST)
    assert int(metadata["epoch"]) == state.best_metrics.epoch < 4
    assert same_weights(best, state.best)
    assert not same_weights(best, state.network)
