"""Runs on disk: exact round trips, damage, full disks; when they are saved."""

import errno
import json
import math
import os
import shutil

import pytest

from mlpcore import backends
from mlpcore.data.summary import DataSummary
from mlpcore.files import LOCK_FILE
from mlpcore.store import run_folder
from mlpcore.store.run_folder import (
    BEST,
    CONFIG,
    LAST,
    METRICS,
    RUN_FILES,
    Run,
    check_output,
    check_result_file,
    read_history,
    read_settings,
)
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network
from small_runs import (
    DATA,
    Hook,
    assert_same_result,
    finish_run,
    load_run,
    make_config,
    refusal,
    same_weights,
    start_run,
)

CONFIG_3 = make_config()


def test_a_run_is_complete_on_disk(tmp_path):
    """Its best network is that of its epoch, not the last one."""
    folder = tmp_path / "run"
    config = make_config(epochs=4, learning_rate=0.3, learning_rate_end=0.3)
    state = finish_run(folder, config, DATA)
    assert sorted(os.listdir(folder)) == sorted([*RUN_FILES, LOCK_FILE])
    assert read_settings(folder) == (config, DataSummary.of(DATA))
    best, metadata = read_network(folder / BEST)
    assert int(metadata["epoch"]) == state.best_metrics.epoch < 4
    assert same_weights(best, state.best) and not same_weights(best, state.network)
    assert read_history(folder) == state.history
    assert TrainedNetwork.read(folder).path == folder / BEST
    loaded = load_run(folder)
    assert_same_result(state, loaded)
    assert loaded.history == state.history
    assert json.loads((folder / CONFIG).read_text())["backend"] == backends.get().description
    lines = [json.loads(x) for x in (folder / METRICS).read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert [line["test_error"] for line in lines] == [round(m.test_error, 4) for m in state.history]


@pytest.mark.parametrize("calls_before", [0, 2])
def test_a_full_disk_at_the_start_leaves_nothing(tmp_path, monkeypatch, calls_before):
    """Neither before the settings are written nor, settings and folder written, the network."""
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > calls_before:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    refusal(start_run, tmp_path / "runs" / "x", CONFIG_3, DATA)
    assert os.listdir(tmp_path / "runs" / "x") == [LOCK_FILE]


@pytest.mark.parametrize(("taken", "saved"), [(0.01, [0, 1, 2, 3]), (0.02, [0, 2, 3]), (9, [0, 3])])
def test_saving_takes_at_most_a_fiftieth_of_the_time(tmp_path, monkeypatch, taken, saved):
    """By a clock that counts 0.7 seconds for an epoch; the last epoch is always saved."""
    now, epochs, write = [0.0], [], Run._save

    def save(run, state):
        epochs.append(state.epoch)
        now[0] += taken
        write(run, state)

    def wait(trainer, event, *_):
        now[0] += 0.7 * (event == "epoch_end")

    monkeypatch.setattr(run_folder.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Run, "_save", save)
    trainer, run = start_run(tmp_path / "run", CONFIG_3, DATA)
    trainer.observers = Hook(wait), run
    assert trainer.run() is True
    run.close()
    assert epochs == saved
    assert_same_result(trainer.state, load_run(run.folder))


def test_a_run_does_not_write_to_a_folder_that_took_the_place_of_its_own(tmp_path, monkeypatch):
    """As when a user removes the folder and begins anew while the first training goes on."""
    monkeypatch.setattr(run_folder, "SAVING_SHARE", math.inf)  # after every epoch
    folder = tmp_path / "run"
    first, run = start_run(folder, CONFIG_3, DATA)
    shutil.rmtree(folder)
    text = refusal(first.run)
    assert f"cannot write {folder}" in text or "No such file" in text
    state = finish_run(folder, make_config(seed=6), DATA)
    first.request_stop()
    assert "has been replaced by another folder" in refusal(first.run)
    run.close()
    assert_same_result(state, load_run(folder))


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_folder_that_holds_a_run(tmp_path, name):
    (tmp_path / name).touch()
    assert "already holds a run" in refusal(check_output, tmp_path)
    assert "already holds a run" in refusal(start_run, tmp_path, CONFIG_3, DATA)
    assert "belongs to a run" in refusal(check_result_file, tmp_path / name.upper())
    check_result_file(tmp_path / "result")
    assert set(os.listdir(tmp_path)) == {name, LOCK_FILE}


def test_only_who_has_the_lock_trains_and_removes_what_was_left(tmp_path):
    _, run = start_run(tmp_path / "run", CONFIG_3, DATA)
    left, other = (run.folder / f".{name}.0a1b2c3d.tmp" for name in (LAST, "picture.png"))
    left.touch()
    other.touch()
    refusal(Run.open, run.folder)
    assert "holds no best" in refusal(TrainedNetwork.read, run.folder)  # no epoch is done
    assert Run(run.folder, *read_settings(run.folder)).load().epoch == 0
    assert left.exists()
    run.close()
    Run.open(run.folder).close()
    assert not left.exists() and other.exists()


def test_a_path_that_is_no_run(tmp_path):
    assert "none does not exist: expected" in refusal(TrainedNetwork.read, tmp_path / "none")
    for call in (TrainedNetwork.read, read_settings, read_history):
        refusal(call, tmp_path)
