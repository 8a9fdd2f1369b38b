"""Damaged runs: files that are missing, cut, changed or another run's are refused in one line."""

import dataclasses
import json
import math
import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run, read_history
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import CHOICES, read_network, write_network
from mlpcore.training.state import TrainingState
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


@settings(max_examples=200)
@given(st.data())
def test_damaged_files_are_refused_or_read(stopped_once, data):
    """Weights have a checksum, and the last network that of the metrics: none is read."""
    name = data.draw(st.sampled_from(RUN_FILES))
    damage = data.draw(st.sampled_from(["missing", "folder", "cut", "bytes"]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = shutil.copytree(stopped_once, Path(temporary, "run"))
        content = (folder / name).read_bytes()
        (folder / name).unlink()
        position = data.draw(st.integers(0, len(content) - 1))
        length = data.draw(st.integers(0, 9))
        changed = content[:position]
        if damage == "bytes":
            changed += data.draw(st.binary(max_size=9)) + content[position + length :]
        if damage == "folder":
            (folder / name).mkdir()
        elif damage != "missing":
            (folder / name).write_bytes(changed)
        try:
            state = load_run(folder)
        except InputError as error:
            assert name in str(error) or name == CONFIG
            assert "\n" not in str(error)
        else:
            assert isinstance(state, TrainingState)
            assert damage in ("cut", "bytes") and (name == CONFIG or changed == content)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"hidden_layers": [9, 7]}, LAST), ({"seed": 6}, LAST), ({"seed": -1}, CONFIG)],
)
def test_other_settings(stopped, change, name):
    content = json.loads((stopped / CONFIG).read_text())
    content["training"] |= change
    (stopped / CONFIG).write_text(json.dumps(content))
    assert name in refusal(load_run, stopped)


@pytest.mark.parametrize("name", [BEST, LAST])
@pytest.mark.parametrize("key", CHOICES)
def test_networks_of_another_kind(stopped, name, key):
    """The weights are those of the run, but they mean another network."""
    (network, metadata), other = read_network(stopped / name), CHOICES[key][1]
    kind = {"activation": "tanh", "loss": "squared"} | (
        {} if key == "input_range" else {key: other}
    )
    changed = Network(network.layer_sizes, **kind)
    changed.assign(network)
    write_network(stopped / name, changed, metadata | {key: other})
    assert f"{name} has {key} {other}, expected" in refusal(load_run, stopped)
    if name == BEST:
        assert f"{name} has {key} {other}, expected" in refusal(TrainedNetwork.read, stopped)


@pytest.mark.parametrize("name", [BEST, LAST])
def test_networks_of_another_width(stopped, name):
    network, metadata = read_network(stopped / name)
    write_network(stopped / name, network, metadata | {"width": "4"})
    assert f"{name} has width 4, expected None" in refusal(load_run, stopped)


@pytest.mark.parametrize("name", [BEST, LAST, METRICS])
def test_files_of_another_run(stopped, tmp_path, name):
    finish_run(tmp_path / "other", make_config(epochs=2, seed=6), DATA)
    (tmp_path / "other" / name).replace(stopped / name)
    assert name in refusal(load_run, stopped)


def test_a_run_that_lacks_its_last_network(stopped):
    """No kill leaves that, so it must not begin anew in silence."""
    (stopped / LAST).unlink()
    assert LAST in refusal(load_run, stopped)
    (stopped / METRICS).unlink()
    assert LAST in refusal(load_run, stopped)


def test_metrics_that_are_longer_than_any_epochs(stopped):
    """256 MiB of line breaks would become as many lines."""
    os.truncate(stopped / METRICS, 2**40)  # a file with a hole
    assert "expected at most 4,096 bytes" in refusal(read_history, stopped)
    assert load_run(stopped).epoch == 2  # which reads as much as two lines may be long


def test_other_data(stopped):
    with closing(Run.open(stopped)) as run:
        refusal(run.check_data, make_dataset(n_test=59))


@pytest.mark.parametrize(
    "changes",
    [
        *({"epoch": value} for value in ("-1", "4", "x")),
        {"best_epoch": "9"},
        {"progress": "[" * 100_000},
        {"progress": "{}"},
        {"progress": '{"samples": 0, "errors": 0, "loss": 0}'},
        *({"samples": value} for value in (-1, 231, 1.5, True, "1", None)),
        *({"loss": value} for value in (math.nan, -1, True, "1", 10**400)),
        *({"errors": value} for value in (-1, 65, 2**40)),
        {"training_seconds": math.inf},
        {"training": "{}"},
        {"metrics_sha256": "0"},
        *({"revisions": value} for value in ("{}", "[[true, 1]]", "[[1]]")),
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_metadata_that_make_no_sense(stopped, changes):
    """With a checksum that fits: nobody's accident, but still one line."""
    network, metadata = read_network(stopped / LAST)
    if changes.keys() & {"samples", "loss", "errors", "training_seconds"}:
        changes = {"progress": json.dumps(json.loads(metadata["progress"]) | changes)}
    write_network(stopped / LAST, network, metadata | changes)
    assert "damaged" in refusal(load_run, stopped)


@pytest.mark.parametrize(
    "changes",
    [
        {name: value}
        for name, values in {
            "epoch": [2, 1.0],
            "n_train": [0, 10**400],
            "n_test": [-1, True],
            "training_errors": [231],
            "validation_errors": [-1],
            "test_errors": [61, 0.5],
            "learning_rate": [0, math.nan, 10**400],
            "loss": [math.inf, -1, "1", None],
            "evaluation_seconds": [-1],
        }.items()
        for value in values
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_metrics_out_of_range(stopped, changes):
    first = read_history(stopped)[0]
    values = dataclasses.asdict(first)
    (stopped / METRICS).write_text(json.dumps(values))
    assert read_history(stopped) == [first]
    (stopped / METRICS).write_text(json.dumps(values | changes))
    assert METRICS in refusal(read_history, stopped)
