"""Damaged runs: files that are missing, cut, changed or another run's are refused in one line."""

import dataclasses
import json
import os
import shutil
from contextlib import closing

import pytest
from msgspec import structs

from mlpcore.network import Network
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run, read_history
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from small_runs import (
    DATA,
    finish_run,
    load_run,
    make_config,
    make_dataset,
    refusal,
    run_with_stop,
    start_run,
)


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    trainer, run = start_run(folder, make_config(), DATA)
    with closing(run):
        run_with_stop(run.config, DATA, trainer.backend, 2, 64, [run])
    return folder


@pytest.fixture
def stopped(tmp_path, stopped_once):
    """The folder of a run that has stopped in its third epoch."""
    return shutil.copytree(stopped_once, tmp_path / "run")


@pytest.mark.parametrize("name", RUN_FILES)
@pytest.mark.parametrize("damage", ["missing", "folder", "cut", "changed"])
def test_damaged_files_are_refused(stopped, name, damage):
    path = stopped / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "missing":
        content[len(content) // 2] ^= 64
        path.write_bytes(content if damage == "changed" else content[: len(content) // 2])
    assert name in refusal(load_run, stopped)
    if name == LAST and damage == "missing":  # no kill leaves that, so nothing begins anew
        (stopped / METRICS).unlink()
        assert LAST in refusal(load_run, stopped)


@pytest.mark.parametrize(
    ("part", "changes", "words"),
    [
        ("training", {"hidden_layers": [9, 7]}, f"{LAST} is of another run: 35-9-6-3, expected"),
        ("training", {"seed": 6}, f"{LAST} has other settings than {CONFIG}"),
        ("training", {"skip": 0.5}, f"{CONFIG} is damaged: Object contains unknown field `skip`"),
        ("training", {"loss": "cross-entropy"}, f"{LAST} is of another run: squared, expected"),
        ("training", {"input_range": "unit"}, f"{LAST} is of another run: {{"),
        ("data", {"held_out": 61}, f"{CONFIG} is damaged: held_out 61: expected"),
    ],
)
def test_other_settings(stopped, part, changes, words):
    content = json.loads((stopped / CONFIG).read_text())
    content[part] |= changes
    (stopped / CONFIG).write_text(json.dumps(content))
    assert words in refusal(load_run, stopped)


@pytest.mark.parametrize("name", [BEST, LAST, METRICS])
def test_files_of_another_run(stopped, tmp_path, name):
    """Or a network whose weights are those of the run, but which means another network."""
    if name != METRICS:
        network, metadata = read_network(stopped / name)
        changed = Network(network.layer_sizes, activation="relu")
        changed.assign(network)
        write_network(stopped / name, changed, metadata)
        assert f"{name} is of another run: relu, expected tanh" in refusal(load_run, stopped)
    if name == BEST:
        assert f"{name} is of another run" in refusal(TrainedNetwork.read, stopped)
    finish_run(tmp_path / "other", make_config(epochs=2, seed=6), DATA)
    (tmp_path / "other" / name).replace(stopped / name)
    assert name in refusal(load_run, stopped)


def test_metrics_that_are_longer_than_any_epochs(stopped):
    """256 MiB of line breaks would become as many lines."""
    os.truncate(stopped / METRICS, 2**40)  # a file with a hole
    assert "expected at most 4,096 bytes" in refusal(read_history, stopped)
    assert load_run(stopped).epoch == 2  # which reads as much as two lines may be long


@pytest.mark.parametrize(
    "data", [make_dataset(n_test=59), dataclasses.replace(DATA, classes=("a", "b", "c"))]
)
def test_other_data(stopped, data):
    with closing(Run.open(stopped)) as run:
        assert "are not those" in refusal(run.check_data, data)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epoch": -1}, "epoch -1: expected"),
        ({"epoch": 4}, "epoch 4: expected"),
        ({"progress": {"samples": 231}}, "samples 231: expected"),
        ({"progress": {"loss": -1}}, "Expected `float` >= 0"),
        ({"training": {}}, "has other settings than config.json beside it"),
        ({"metrics_sha256": "0"}, f"{METRICS} is damaged: its first 2 lines do not fit"),
    ],
)
def test_a_place_that_makes_no_sense(stopped, changes, words):
    """With a checksum that fits: nobody's accident, but still one line."""
    network, metadata = read_network(stopped / LAST)
    values = json.loads(metadata["checkpoint"])
    if changes.get("progress"):
        changes = {"progress": values["progress"] | changes["progress"]}
    write_network(stopped / LAST, network, metadata | {"checkpoint": json.dumps(values | changes)})
    assert words in refusal(load_run, stopped)
    write_network(stopped / LAST, network, metadata | {"checkpoint": "[" * 100_000})
    assert f"{LAST} is damaged" in refusal(load_run, stopped)


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": 2},
        {"epoch": 1.0},
        {"n_test": -1},
        {"learning_rate": -1},
        {"loss": float("inf")},
    ],
    ids=str,
)
def test_metrics_out_of_range(stopped, changes):
    first = read_history(stopped)[0]
    values = structs.asdict(first)
    (stopped / METRICS).write_text(json.dumps(values))
    assert read_history(stopped) == [first]
    (stopped / METRICS).write_text(json.dumps(values | changes))
    assert f"{METRICS} is damaged" in refusal(read_history, stopped)
