"""Damaged runs: files that are missing, cut, changed or another run's are refused in one line."""

import json
import os
import shutil
from contextlib import closing

import pytest

from mlpcore.network import Network
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, read_history
from mlpcore.store.weights import read_network, write_network
from small_runs import DATA, StopAfter, finish_run, load_run, make_config, refusal, start_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run that has stopped in its third epoch, and another run."""
    folder = tmp_path_factory.mktemp("runs")
    trainer, run = start_run(folder / "run", make_config(), DATA)
    StopAfter(trainer, 2, 64)
    with closing(run):
        assert trainer.run() is False
    finish_run(folder / "other", make_config(epochs=2, seed=6), DATA)
    return folder


@pytest.fixture
def stopped(tmp_path, made):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


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


def settings(**changes):
    def change(run):
        content = json.loads((run / CONFIG).read_text())
        content["training"] |= changes
        (run / CONFIG).write_text(json.dumps(content))

    return change


def checkpoint(name=LAST, activation="tanh", text=None, **changes):
    """Another network or place in the run, with a checksum that fits: nobody's accident."""

    def change(run):
        network, metadata = read_network(run / name)
        changed = Network(network.layer_sizes, activation=activation)
        changed.assign(network)
        if text or changes:
            values = json.loads(metadata["checkpoint"])
            metadata["checkpoint"] = text or json.dumps(values | changes)
        write_network(run / name, changed, metadata)

    return change


NO_FIT = f"does not match {CONFIG}"
REFUSED = [
    (settings(hidden_layers=[9, 7]), f"{LAST} {NO_FIT}: architecture 35,9,6,3, expected"),
    (settings(skip=0.5), f"{CONFIG} is damaged: Object contains unknown field `skip`"),
    (settings(input_range="unit"), f"{LAST} {NO_FIT}: pixels {{"),
    (checkpoint(epoch=4), "epoch 4: expected"),
    (checkpoint(progress={"samples": 231}), "samples 231: expected"),
    (checkpoint(metrics_sha256="0"), f"{METRICS} is damaged: its first 2 lines do not match"),
    (checkpoint(text="[" * 100_000), f"{LAST} is damaged"),
    *((lambda run, n=n: os.replace(run / "../other" / n, run / n), n) for n in RUN_FILES[1:]),
    *((checkpoint(n, "relu"), f"{n} {NO_FIT}: activation relu, expected") for n in (BEST, LAST)),
]


@pytest.mark.parametrize(("damage", "words"), REFUSED)
def test_files_that_do_not_fit_each_other(stopped, damage, words):
    damage(stopped)
    assert words in refusal(load_run, stopped)


def test_metrics_out_of_range(stopped):
    """And ones that are longer than any: 256 MiB of line breaks would become as many lines."""
    path = stopped / METRICS
    first = json.loads(path.read_text().splitlines()[0])
    os.truncate(path, 2**40)  # a file with a hole
    assert "expected at most 4,096 bytes" in refusal(read_history, stopped)
    assert load_run(stopped).epoch == 2  # which reads as much as two lines may be long
    for changes in {"epoch": 2}, {"n_test": -1}:
        path.write_text(json.dumps(first | changes))
        assert f"{METRICS} is damaged" in refusal(read_history, stopped)
