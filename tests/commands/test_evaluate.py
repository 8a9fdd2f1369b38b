"""`mlpcore evaluate`: what it prints and writes; a run in use stays as it is; refusals."""

import contextlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Network, backends, dataset
from mlpcore.evaluation import Copies, Evaluation, evaluation
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, Run
from mlpcore.store.weights import read_network, write_network
from small_runs import finish_run, make_config, make_pixels, write_arrays, write_idx

RUN, OTHER, WEIGHTS, DATA = (
    Path("..", name) for name in ("run", "other", "run/" + BEST, "letters")
)


def train(folder, data, **changes):
    """A finished run in a folder."""
    finish_run(folder, make_config(backend="scalar", **changes), data, backends.get("scalar", 1))


def write(network, path="n.safetensors", shape=(7, 5), data="letters", **seen):
    """A file of weights."""
    write_network(path, network, NetworkInput(data, shape, shape, **seen).to_metadata())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of small IDX files, and runs on them."""
    folder = tmp_path_factory.mktemp("made")
    data = dataset.load(write_idx(folder / "letters"))
    train(folder / "run", data, learning_rate=0.008)  # which leaves some errors
    train(folder / "other", data, hidden_layers=(7,), seed=8)
    return folder


@pytest.fixture(autouse=True)
def runs_beside(tmp_path, monkeypatch, made, isolated):
    """Copies of the runs beside the working folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")


def test_a_run_and_its_weights(call, monkeypatch):
    """Weights alone are evaluated on data that are named or found."""
    lines = call("evaluate", RUN).splitlines()
    assert re.fullmatch(r"data: letters \(.*\): 60 test images of 7 x 5", lines[0])
    assert lines[1].startswith("backend: scalar")
    assert lines[4].split()[:2] == [str(RUN), "35-9-6-3"]
    named = call("evaluate", WEIGHTS, "--data", DATA)
    monkeypatch.setenv("MLPCORE_DATA", str(DATA))
    assert call("evaluate", WEIGHTS) == named
    assert named.splitlines()[4].split()[2:] == lines[4].split()[2:]


def test_tables_by_hand(call):
    network = Network((35, 3))
    network.biases[0][...] = (-1, 1, 0)  # guesses 1, then 2, whatever it sees
    write(network)
    out = call("evaluate", "n.safetensors", "--data", DATA)
    assert re.search(r"40 of 60 +66.67 % .* 20 of 40$", out, re.MULTILINE)
    rows = [line.split() for line in out.splitlines()]
    start = rows.index(["label", "0", "1", "2"])
    assert rows[start + 1 : start + 4] == [[label, ".", "20", "."] for label in "012"]
    listed = [row for row in rows if row[-2:] == ["2", "0.000"]]
    a = f"{1.7159 * np.tanh(0.6666):.3f}"
    assert listed[:2] == [["0", "0", "1", a, "2", "0.000"], ["2", "2", "1", a, "2", "0.000"]]
    assert rows[-1] == ["and", "20", "more:", "--all", "lists", "them"]
    out = call("evaluate", "n.safetensors", "--data", DATA, "--all")
    assert (len(listed), len(re.findall(r" 0\.000$", out, re.MULTILINE))) == (20, 40)
    assert "more" not in out


@pytest.mark.parametrize("copies", [None, Copies(3, 0.1, 4)])
def test_networks_alone_and_together(call, copies):
    """Each sees images, or copies of them, in its own range; the mean decides."""
    data, backend = dataset.load(DATA), backends.get("scalar", 1)
    write(read_network(WEIGHTS)[0], "unit", input_range="unit")
    members = [(RUN, WEIGHTS, "signed"), ("unit", "unit", "unit")]
    members += [(OTHER / LAST, OTHER / LAST, "signed")]
    options = ["--copies", 3, "--strength", "0.1", "--seed", 4] if copies else []
    out = call("evaluate", *(each[0] for each in members), *options, "--json", "c.json")
    assert ("; 9 passes of 3 networks per prediction\n" in out) == bool(copies)
    rows = [re.split(r"\s{2,}", row) for row in out.splitlines()[4 + bool(copies) :][:4]]
    names = [str(each[0]) for each in members]
    assert [row[0] for row in rows] == [*names, "committee of 3"]
    assert [row[1] for row in rows[:3]] == ["35-9-6-3", "35-9-6-3", "35-7-3"]
    outputs = []
    for _, file, input_range in members:
        seen = read_network(file)[0], data.as_inputs(input_range).test_images, backend
        outputs.append((copies or evaluation).outputs(*seen))
    document = json.loads(Path("c.json").read_text())
    assert document["data"]["n_test"] == 60
    assert document.get("copies", {}).get("passes") == (9 if copies else None)
    found = [*document["networks"], document["committee"]]
    assert [found[0].pop(name) for name in ("path", "layer_sizes")] == [names[0], [35, 9, 6, 3]]
    for each, result in zip((*outputs, np.mean(outputs, axis=0)), found, strict=True):
        expected = json.loads(json.dumps(Evaluation.of(each, data.test_labels).to_json()))
        assert expected.items() <= result.items()


def test_many_classes_are_no_table(call):
    x, _ = make_pixels(60, 0)
    labels = (np.arange(60) % 25).astype(np.uint8)
    write(Network((35, 25), 0))
    folder = write_arrays(Path("many"), 2 * (x, labels))
    out = call("evaluate", "n.safetensors", "--data", folder)
    assert "confusion" not in out and "misclassified" in out


def test_other_data_than_those_of_the_run_are_noted(call):
    assert "note" not in call("evaluate", RUN)
    write_idx(Path("new"), n_test=61)
    write(read_network(WEIGHTS)[0], data="digits of ours")
    out = call("evaluate", "n.safetensors", "--data", "new")
    assert "note: n.safetensors was trained on data called digits of ours\n" in out
    out = call("evaluate", RUN, "--data", "new")
    assert f"note: {RUN} was trained on other data than these: letters as in" in out
    assert "61 test images" in out


#: Values of images for a network that was trained on 0 to 16, and how many times as large they are.
VALUES = {
    "fewer": ("int64", 6),
    "bytes": ("uint8", 16),
    "beyond": ("float64", 24),
    "as trained": ("int64", 16),
}


@pytest.mark.parametrize("values", VALUES)
def test_other_data_are_scaled_as_those_of_the_training(call, values):
    """Pixels of a value are the same in files of any type and range."""
    dtype, most = VALUES[values]
    pixels, labels = make_pixels(60, 3)
    pixels = (pixels / 255 * most).astype(dtype)
    np.savez("new.npz", X=pixels, y=labels, X_test=pixels, y_test=labels)
    network = read_network(WEIGHTS)[0]
    write(network, value_range=(0, 16))
    write(network, "other", value_range=(0, 14))
    call("evaluate", "n.safetensors", "other", "--data", "new.npz", "--json", "j")
    result = json.loads(Path("j").read_text())
    backend, outputs = backends.get("scalar", 1), []
    for high, found in zip((16, 14), result["networks"]):
        images = (pixels.astype(np.float32) / np.float32(high / 2) - 1).reshape(60, 35)
        outputs.append(evaluation.outputs(network, images, backend))
        assert Evaluation.of(outputs[-1], labels).to_json()["confusion"] == found["confusion"]
    whole = Evaluation.of(np.mean(outputs, axis=0), labels).to_json()
    assert whole["confusion"] == result["committee"]["confusion"]


def test_a_run_in_use_stays_as_it_is(call):
    def content():
        files = sorted(RUN.rglob("*"))
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = content()
    with contextlib.closing(Run.open(RUN)):  # as a training would
        out = call("evaluate", RUN, WEIGHTS, "--figures", "a/b")
    assert content() == before
    names = ["misclassified", "confusion", "learning-curves-1", "first-layer-1", "first-layer-2"]
    paths = [Path("a", "b", f"{name}.png") for name in names]
    assert out.splitlines()[-5:] == [f"figure: {path}" for path in paths]
    assert sorted(Path("a", "b").iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([RUN, "--json", RUN / LAST], f"{LAST} belongs to a run"),
        ([RUN, "--strength", 1], "--strength without --copies: expected both or none"),
        ([RUN, "--seed", 1], "--seed without --copies: expected both or none"),
        ([RUN, "--copies", 0], "copies 0: expected"),
        ([RUN, "--dataset", "digits"], "7 x 5 and 3 classes: expected images of 29 x 29 and 10"),
        ([RUN, "n.safetensors"], "network 2 of a committee is 36-3: expected 35 inputs"),
        (["wild", "--data", DATA], "error: wild: its outputs are not finite"),
        (["sixteen", "--data", DATA], "from 0 to 255: expected 0 to 16, as in the training"),
        (["mixed"], "is of another run: 35-7-3, expected 35-9-6-3"),
        (["half", "--figures", "f"], METRICS),
        (["less"], "cannot read less/config.json"),
    ],
)
def test_refusals(call, refusal, arguments, part):
    write(Network((36, 3), 0), shape=(6, 6))
    wild = Network((35, 256, 3), 0)
    wild.biases[0][...] = 1e3  # all states are 1.7159
    wild.weights[1][:, :128] = 3e38  # finite, but infinite sums of both signs meet
    wild.weights[1][:, 128:] = -3e38
    write(wild, "wild")
    write(Network((35, 3), 0), "sixteen", value_range=(0, 16))
    for name in ("mixed", "half", "less"):
        shutil.copytree(RUN, name)
    shutil.copy(OTHER / BEST, "mixed")
    Path("half", METRICS).unlink()
    call("evaluate", "half")  # the metrics are for the learning curves alone
    Path("less", CONFIG).unlink()
    assert part in refusal("evaluate", *arguments)
