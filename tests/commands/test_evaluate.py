"""`mlpcore evaluate`: what it prints and writes; a run in use stays as it is; untrusted files."""

import contextlib
import json
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from mlpcore import Committee, Network, backends, dataset
from mlpcore.commands import evaluate
from mlpcore.evaluation import Copies, Evaluation, evaluation
from mlpcore.report.results import confusion_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.trainer import Trainer
from small_runs import make_config, write_idx

RUN, OTHER, WEIGHTS, DATA = (
    Path("..", name) for name in ("run", "other", "run/" + BEST, "letters")
)


def train(folder, data, **changes):
    """A finished run in a folder."""
    backend = backends.get("scalar", 1)
    trainer = Trainer(make_config(backend="scalar", **changes), data, backend)
    run = Run.create(folder, trainer.config, data, backend.description, trainer.state)
    trainer.observers = (run,)
    with contextlib.closing(run):
        assert trainer.run()


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


def expected(*paths):
    """The evaluation of networks, alone or averaged, by the library."""
    data = dataset.load(DATA)
    committee = Committee([read_network(path)[0] for path in paths])
    return committee.evaluate(data.test_images, data.test_labels, backends.get("scalar", 1))


def test_a_run(call):
    lines = call("evaluate", RUN).splitlines()
    result = expected(WEIGHTS)
    assert 0 < result.second_right < result.errors <= evaluate.LISTED
    assert lines[0].startswith("data: letters (")
    assert lines[0].endswith("): 60 test images of 7 x 5")
    assert lines[1].startswith("backend: scalar")
    header, row = (re.split(r"\s{2,}", line) for line in lines[3:5])
    low, high = result.interval
    assert dict(zip(header, row)) == {
        "network": str(RUN),
        "layers": "35-9-6-3",
        "errors": f"{result.errors} of 60",
        "error": f"{result.error_rate:.2f} %",
        "95 % interval": f"{low:.2f} to {high:.2f} %",
        "second guess right": f"{result.second_right} of {result.errors}",
    }
    text = "\n".join(lines)
    assert text_table(confusion_table(result)) in text
    assert text.endswith(text_table(misclassified_table(result)))


def test_tables_by_hand(call):
    network = Network((35, 3))
    network.biases[0][...] = (-1, 1, 0)  # guesses 1, then 2, whatever it sees
    write_network(Path("n.safetensors"), network, {})
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


def test_weights_alone_are_evaluated_on_data_that_are_named_or_found(call, monkeypatch):
    named = call("evaluate", WEIGHTS, "--data", DATA)
    monkeypatch.setenv("MLPCORE_DATA", str(DATA))
    assert call("evaluate", WEIGHTS) == named
    row, of_the_run = (out.splitlines()[4].split()[2:] for out in (named, call("evaluate", RUN)))
    assert row == of_the_run


def test_networks_get_images_in_their_range(call):
    network, _ = read_network(WEIGHTS)
    write_network(Path("unit"), network, {"input_range": "unit"})
    call("evaluate", WEIGHTS, "unit", "--data", DATA, "--json", "c.json")
    document, data = json.loads(Path("c.json").read_text()), dataset.load(DATA)
    backend, found = backends.get("scalar", 1), [r["confusion"] for r in document["networks"]]
    for input_range, confusion in zip(("signed", "unit"), found):
        images = data.with_range(input_range).test_images
        result = evaluation.evaluate(network, images, data.test_labels, backend)
        assert confusion == result.confusion.tolist()
    assert found[0] != found[1]


def test_each_member_sees_its_own_width(call):
    data, backend = dataset.load(DATA), backends.get("scalar", 1)
    for width in (2, 4):
        train(Path(f"w{width}"), data, width=width)
    rows = call("evaluate", RUN, "w2", "w4", "--json", "c.json").splitlines()[4:7]
    assert [re.split(r"\s{2,}", row)[1][8:] for row in rows] == ["", ", width 2", ", width 4"]
    document = json.loads(Path("c.json").read_text())
    outputs = []
    for path, width, found in zip((RUN, "w2", "w4"), (None, 2, 4), document["networks"]):
        images = data.with_width(width).test_images
        outputs.append(evaluation.outputs(read_network(Path(path, BEST))[0], images, backend))
        alone = evaluation.Evaluation.of(outputs[-1], data.test_labels)
        assert found.get("width") == width
        assert found["confusion"] == alone.confusion.tolist()
    whole = evaluation.Evaluation.of(np.mean(outputs, axis=0), data.test_labels)
    assert document["committee"] == json.loads(json.dumps(whole.to_json()))


def test_a_committee_and_its_json(call):
    paths, weights = (RUN, OTHER / LAST, RUN), (WEIGHTS, OTHER / LAST, WEIGHTS)
    out = call("evaluate", *paths, "--json", "c.json")
    lines, result = out.splitlines(), expected(*weights)
    assert [line.split()[0] for line in lines[4:7]] == [str(path) for path in paths]
    assert re.match(rf"committee of 3 +{result.errors} of 60 ", lines[7])
    assert "confusion matrix of the committee" in out
    document = json.loads(Path("c.json").read_text())
    assert set(document) == {"data", "backend", "networks", "committee"}
    assert document["data"]["n_test"] == 60
    assert document["committee"] == json.loads(json.dumps(result.to_json()))
    alone = expected(WEIGHTS).to_json() | {"path": str(RUN), "layer_sizes": (35, 9, 6, 3)}
    assert document["networks"][0] == json.loads(json.dumps(alone))


def test_copies(call):
    """Each network sees copies of its own inputs, and the committee is their mean."""
    network, _ = read_network(WEIGHTS)
    write_network(Path("unit"), network, {"input_range": "unit"})
    options = ("--copies", 3, "--strength", "0.1", "--seed", 4, "--data", DATA)
    out = call("evaluate", WEIGHTS, "unit", *options, "--json", "c.json")
    assert "copies: 3 of each image, deformed at strength 0.1 " in out
    assert "; 6 passes of 2 networks per prediction\n" in out
    document, data = json.loads(Path("c.json").read_text()), dataset.load(DATA)
    assert document["copies"] == {"n": 3, "strength": 0.1, "seed": 4, "passes": 6}
    outputs, backend = [], backends.get("scalar", 1)
    for input_range in ("signed", "unit"):
        images = data.with_range(input_range).test_images
        outputs.append(Copies(3, 0.1, 4).outputs(network, images, backend, input_range))
    found = [each["confusion"] for each in (*document["networks"], document["committee"])]
    for confusion, each in zip(found, (*outputs, np.mean(outputs, axis=0)), strict=True):
        assert confusion == Evaluation.of(each, data.test_labels).confusion.tolist()
    assert call("evaluate", WEIGHTS, "unit", *options) == out


def test_figures(call):
    out = call("evaluate", RUN, WEIGHTS, "--figures", "a/b")
    names = ["misclassified", "confusion", "learning-curves-1", "first-layer-1", "first-layer-2"]
    paths = [Path("a", "b", f"{name}.png") for name in names]
    assert out.splitlines()[-5:] == [f"figure: {path}" for path in paths]
    assert sorted(Path("a", "b").iterdir()) == sorted(paths)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_many_classes_are_no_table(call):
    folder = write_idx(Path("many"))
    for path in folder.glob("*labels*"):
        n = struct.unpack(">2I", path.read_bytes()[:8])[1]
        labels = (np.arange(n) % 25).astype(np.uint8)
        path.write_bytes(struct.pack(">2I", 0x801, n) + labels.tobytes())
    write_network(Path("n.safetensors"), Network((35, 25), 0), {})
    out = call("evaluate", "n.safetensors", "--data", folder)
    assert "confusion" not in out and "misclassified" in out


def test_other_data_than_those_of_the_run_are_noted(call):
    assert "note" not in call("evaluate", RUN)
    write_idx(Path("new"), n_test=61)
    network, _ = read_network(WEIGHTS)
    write_network(Path("n.safetensors"), network, {"dataset": "digits of ours"})
    out = call("evaluate", "n.safetensors", "--data", "new")
    assert "note: n.safetensors was trained on data called digits of ours\n" in out
    out = call("evaluate", RUN, "--data", "new")
    assert f"note: {RUN} was trained on other data than these: letters as in" in out
    assert "61 test images" in out


def test_a_run_in_use_stays_as_it_is(call):
    def content():
        files = sorted(RUN.rglob("*"))
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = content()
    with contextlib.closing(Run.open(RUN)):  # as a training would
        call("evaluate", RUN, "--figures", "f")
    assert content() == before


# Refusals


@pytest.mark.parametrize("name", RUN_FILES)
def test_no_result_replaces_a_file_of_a_run(refusal, name):
    text = refusal("evaluate", RUN, "--json", RUN / name)
    assert f"../run/{name} belongs to a run: expected another" in text


def test_copies_that_are_not_named(refusal):
    for option in ("--strength", "--seed"):
        text = refusal("evaluate", RUN, option, 1)
        assert f"{option} without --copies: expected both or none" in text
    assert "copies 0: expected" in refusal("evaluate", RUN, "--copies", 0)


def test_networks_for_other_data(refusal):
    for sizes in ((36, 9, 3), (35, 9, 4), (35, 2)):
        write_network(Path("n.safetensors"), Network(sizes, 0), {})
        layers = "-".join(map(str, sizes))
        text = refusal("evaluate", "n.safetensors", "--data", DATA)
        assert f"n.safetensors is a network of {layers}: expected 35 inputs" in text
        assert "network 2 of a committee" in refusal("evaluate", RUN, "n.safetensors")
    assert "expected 841 inputs" in refusal("evaluate", RUN, "--dataset", "digits")


def test_a_run_without_its_settings_or_metrics(call, refusal):
    (RUN / METRICS).unlink()
    call("evaluate", RUN)  # the metrics are for the learning curves alone
    assert METRICS in refusal("evaluate", RUN, "--figures", "f")
    (RUN / CONFIG).unlink()
    assert f"cannot read {RUN / CONFIG}" in refusal("evaluate", RUN)


def test_a_run_with_the_weights_of_another(refusal):
    shutil.copy(OTHER / BEST, RUN / BEST)
    assert "holds a network of 35-7-3, expected 35-9-6-3" in refusal("evaluate", RUN)


def test_outputs_that_are_not_finite(refusal):
    network = Network((35, 256, 3), 0)
    network.biases[0][...] = 1e3  # all states are 1.7159
    network.weights[1][:, :128] = 3e38  # finite, but infinite sums of both signs meet
    network.weights[1][:, 128:] = -3e38
    write_network(Path("n.safetensors"), network, {})
    text = refusal("evaluate", "n.safetensors", "--data", DATA)
    assert text.startswith("error: n.safetensors: outputs: not all are finite")
