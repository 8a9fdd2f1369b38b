"""`mlpcore evaluate`: what it prints and writes, on any data; a run in use stays as it is."""

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Network, backends
from mlpcore.evaluation import Evaluation, evaluation
from mlpcore.store.run_folder import BEST, Run
from mlpcore.store.weights import read_network
from small_runs import make_pixels, write_idx, write_weights

RUN, WEIGHTS, DATA = Path("run"), Path("run", BEST), Path("letters")

pytestmark = pytest.mark.usefixtures("made_here")


def test_tables_by_hand(call):
    network = Network((35, 3))
    network.biases[0][...] = (-1, 1, 0)  # guesses 1, then 2, whatever it sees
    write_weights("n", network)
    out = call("evaluate", "n", "--data", DATA)
    assert re.search(r"40 of 60 +66.67 % .* 20 of 40$", out, re.MULTILINE)
    rows = [line.split() for line in out.splitlines()]
    start = rows.index(["label", "0", "1", "2"])
    assert rows[start + 1 : start + 4] == [[label, ".", "20", "."] for label in "012"]
    listed = [row for row in rows if row[-2:] == ["2", "0.000"]]
    a = f"{1.7159 * np.tanh(0.6666):.3f}"
    assert listed[:2] == [["0", "0", "1", a, "2", "0.000"], ["2", "2", "1", a, "2", "0.000"]]
    assert rows[-1] == ["and", "20", "more:", "--all", "lists", "them"]
    out = call("evaluate", "n", "--data", DATA, "--all")
    assert (len(listed), len(re.findall(r" 0\.000$", out, re.MULTILINE))) == (20, 40)
    assert "more" not in out


def test_data_are_those_of_the_run_or_what_is_found(call, monkeypatch):
    """Others than those of the training are noted."""
    out = call("evaluate", RUN)
    assert call("evaluate", WEIGHTS, RUN).splitlines()[0] == out.splitlines()[0]
    assert "note" not in out
    monkeypatch.setenv("MLPCORE_DATA", str(DATA))
    assert call("evaluate", WEIGHTS).splitlines()[4].split()[2:] == out.splitlines()[4].split()[2:]
    write_idx(Path("new"), n_test=61)
    write_weights("n", read_network(WEIGHTS)[0], data="digits of ours")
    out = call("evaluate", "n", "--data", "new")
    assert "note: n was trained on other data: digits of ours\n" in out
    out = call("evaluate", RUN, "--data", "new")
    assert f"note: {RUN} was trained on other data: letters from" in out
    assert "61 test images" in out
    options = ["--data", DATA, "--arch", "3", "--epochs", "1", "--out"]
    call("train", *options, "a", "--hold-out", "20")
    call("train", *options, "b")
    assert "note: b learned from these held-out images\n" in call("evaluate", "a", "b")


@pytest.mark.parametrize(("dtype", "most"), [("uint8", 16), ("float64", 24)])
def test_other_data_are_scaled_as_those_of_the_training(call, dtype, most):
    """Pixels of a value are the same in files of any type and range; the training saw 0 to 16."""
    pixels, labels = make_pixels(60, 3)
    pixels = (pixels / 255 * most).astype(dtype)
    np.savez("new.npz", X=pixels, y=labels, X_test=pixels, y_test=labels)
    write_weights("n", read_network(WEIGHTS)[0], value_range=(0, 16))
    call("evaluate", "n", "--data", "new.npz", "--json", "j")
    images = (pixels.astype(np.float32) / np.float32(8) - 1).reshape(60, 35)
    outputs = evaluation.outputs(read_network(WEIGHTS)[0], images, backends.get("scalar", 1))
    (found,) = json.loads(Path("j").read_text())["networks"]
    assert Evaluation.of(outputs, labels).to_json()["confusion"] == found["confusion"]


def test_data_without_a_test_set_are_for_the_test_as_a_whole(call, refusal):
    """Unless a part of them trained a network."""
    pixels, labels = make_pixels(60, 3)
    np.savez("new.npz", X=pixels, y=labels)
    out = call("evaluate", WEIGHTS, "--data", "new.npz")
    assert "note: new has no test set: the test uses all 60 images\n" in out and "of 60 " in out
    call("train", "--data", "new.npz", "--arch", 3, "--epochs", 1, "--out", "new")
    assert "of 12 " in call("evaluate", "new", WEIGHTS, "--data", "new.npz")
    np.savez("new.npz", X=pixels[1:], y=labels[1:])  # which are divided in another way
    assert "are not those that the training began with" in refusal("evaluate", "new")
    np.savez("new.npz", X=pixels, y=labels)
    Path("new/best.safetensors").rename("alone.safetensors")  # which knows only the data's name
    assert "of 12 " in call("evaluate", "alone.safetensors", "--data", "new.npz")


def test_a_run_in_use_stays_as_it_is(call):
    def content():
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in RUN.iterdir()}

    with contextlib.closing(Run.open(RUN)):  # as a training would
        before = content()
        out = call("evaluate", RUN, WEIGHTS, "--figures", "a/b")
    assert content() == before
    names = ["misclassified", "confusion", "learning-curves-1", "first-layer-1", "first-layer-2"]
    paths = [Path("a", "b", f"{name}.png") for name in names]
    assert out.splitlines()[-5:] == [f"figure: {path}" for path in paths]
    assert sorted(Path("a", "b").iterdir()) == sorted(paths)
