"""Runs on disk: exact round trips, damage, full disks; when they are saved."""

import errno
import json
import math
import os
import shutil
from contextlib import closing
from unittest.mock import Mock

import pytest
from msgspec import structs

from mlpcore import backends
from mlpcore.data.summary import DataSummary
from mlpcore.files import LOCK_FILE
from mlpcore.store import run_folder
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run, read_settings
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network
from small_runs import (
    DATA,
    assert_same_result,
    finish_run,
    load_run,
    make_config,
    refusal,
    same_weights,
    start_run,
)


def test_a_run_is_complete_on_disk(tmp_path):
    """Its best network is that of its epoch, not the last one."""
    folder = tmp_path / "run"
    config = make_config(epochs=4, learning_rate=0.3, learning_rate_end=0.3, seed=6)
    state = finish_run(folder, config, DATA)
    assert sorted(os.listdir(folder)) == sorted([*RUN_FILES, LOCK_FILE])
    data = DataSummary.of(DATA)
    assert read_settings(folder) == (config, data)
    other = structs.replace(data, classes=("a", "b", "c"))
    assert "are not those" in refusal(data.check_same, other, "the run")
    best, metadata = read_network(folder / BEST)
    assert int(metadata["epoch"]) == state.best_metrics.epoch < 4
    assert same_weights(best, state.best) and not same_weights(best, state.network)
    assert run_folder.read_history(folder) == state.history
    assert TrainedNetwork.read(folder).path == folder / BEST
    assert_same_result(state, load_run(folder))
    assert json.loads((folder / CONFIG).read_text())["backend"] == backends.get().description
    errors = [json.loads(x)["test_error"] for x in (folder / METRICS).read_text().splitlines()]
    assert errors == [round(each.test_error, 4) for each in state.history]


@pytest.mark.parametrize("calls_before", [0, 2])
def test_a_full_disk_at_the_start_leaves_nothing(tmp_path, monkeypatch, calls_before):
    """Neither before the settings are written nor, settings and folder written, the network."""
    calls = [None] * calls_before + [OSError(errno.ENOSPC, "No space left on device")] * 9
    monkeypatch.setattr(os, "fsync", Mock(side_effect=calls))
    refusal(start_run, tmp_path / "runs" / "x", make_config(), DATA)
    assert os.listdir(tmp_path / "runs" / "x") == [LOCK_FILE]
    monkeypatch.undo()
    run_folder.check_output(tmp_path / "runs" / "x")  # which does not refuse another try


@pytest.mark.parametrize(("taken", "saved"), [(0.01, [0, 1, 2, 3]), (0.02, [0, 2, 3]), (9, [0, 3])])
def test_saving_takes_at_most_a_fiftieth_of_the_time(tmp_path, monkeypatch, taken, saved):
    """By a clock that counts 0.7 seconds for an epoch; the last epoch is always saved."""
    epochs, write, trainer = [], Run._save, None

    def save(run, state):
        epochs.append(state.epoch)
        write(run, state)

    def clock():
        return taken * len(epochs) + 0.7 * (trainer.state.epoch if trainer else 0)

    monkeypatch.setattr(run_folder.time, "monotonic", clock)
    monkeypatch.setattr(Run, "_save", save)
    trainer, run = start_run(tmp_path / "run", make_config(), DATA)
    with closing(run):
        assert trainer.run() is True
    assert epochs == saved
    assert_same_result(trainer.state, load_run(run.folder))


def test_a_run_does_not_write_to_a_folder_that_took_the_place_of_its_own(tmp_path, monkeypatch):
    """As when a user removes the folder and begins anew while the first training goes on."""
    monkeypatch.setattr(run_folder, "SAVING_SHARE", math.inf)  # after every epoch
    folder = tmp_path / "run"
    first, run = start_run(folder, make_config(), DATA)
    shutil.rmtree(folder)
    assert f"cannot write {folder}" in refusal(first.run)
    state = finish_run(folder, make_config(seed=6), DATA)
    first.request_stop()
    assert "has been replaced by another folder" in refusal(first.run)
    run.close()
    assert_same_result(state, load_run(folder))


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_folder_that_holds_a_run(tmp_path, name):
    (tmp_path / name).touch()
    assert "already holds a run" in refusal(run_folder.check_output, tmp_path)
    assert "already holds a run" in refusal(start_run, tmp_path, make_config(), DATA)
    assert "belongs to a run" in refusal(run_folder.check_result_file, tmp_path / name.upper())
    run_folder.check_result_file(tmp_path / "result")
    assert set(os.listdir(tmp_path)) == {name, LOCK_FILE}


def test_only_who_has_the_lock_trains_and_removes_what_was_left(tmp_path):
    _, run = start_run(tmp_path / "run", make_config(), DATA)
    left, other = (run.folder / f".{name}.0a1b2c3d.tmp" for name in (LAST, "picture.png"))
    left.touch()
    other.touch()
    refusal(Run.open, run.folder)
    assert Run(run.folder, *read_settings(run.folder)).load().epoch == 0
    assert left.exists()
    run.close()
    Run.open(run.folder).close()
    assert not left.exists() and other.exists()
