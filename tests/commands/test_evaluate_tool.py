"""tools/evaluate.py: what it prints and writes; runs in use stay as they are; untrusted files."""

import contextlib
import json
import os
import re
import shutil
import stat
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from mlpcore import Committee, Network, backends, dataset, evaluate
from mlpcore.data import mnist
from mlpcore.report.results import confusion_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.run_folder import BEST, CONFIG, LAST, METRICS, RUN_FILES, Run
from mlpcore.store.weights import read_network, write_network
from mlpcore.training.trainer import Trainer
from small_runs import isolate, load_tool, make_config, write_idx

tool = load_tool("evaluate")


def train(folder, data, **changes):
    """A finished run in a folder."""
    backend = backends.get("scalar", 1)
    trainer = Trainer(make_config(backend="scalar", **changes), data, backend)
    run = Run.create(folder, trainer.config, data, backend.description, trainer.state)
    trainer.observers = (run,)
    with contextlib.closing(run):
        assert trainer.run()
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of small IDX files, and runs on them."""
    folder = tmp_path_factory.mktemp("made")
    data = dataset.load(write_idx(folder / "letters"))
    train(folder / "run", data, learning_rate=0.008)  # which leaves some errors
    train(folder / "other", data, hidden_layers=(7,), seed=8)
    return folder


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch, made):
    """An empty working folder beside the runs, no data set of this machine, no network."""
    shutil.copytree(made, tmp_path / "made")
    isolate(monkeypatch, tmp_path / "made" / "work")
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    monkeypatch.setattr(mnist, "download", lambda *args: "there is no network")


RUN, OTHER, WEIGHTS, DATA = (
    Path("..", name) for name in ("run", "other", Path("run", BEST), "letters")
)


def call(capsys, *argv):
    """What the tool prints."""
    capsys.readouterr()
    assert tool.main([str(each) for each in argv]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments."""
    capsys.readouterr()
    assert tool.main([str(each) for each in argv]) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]+\n", err)
    return err


def expected(*paths):
    """The evaluation of networks, alone or averaged, by the library."""
    data = dataset.load(DATA)
    networks = [read_network(path)[0] for path in paths]
    return Committee(networks).evaluate(
        data.test_images, data.test_labels, backends.get("scalar", 1)
    )


# What it says


def test_a_run(capsys):
    lines = call(capsys, RUN).splitlines()
    result = expected(WEIGHTS)
    assert 0 < result.second_right < result.errors <= tool.LISTED
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


def test_tables_by_hand(capsys):
    network, data = Network((35, 3)), dataset.load(DATA)
    network.biases[0][...] = (-1, 1, 0)  # guesses 1, then 2, whatever it sees
    write_network(Path("n.safetensors"), network, {})
    out = call(capsys, "n.safetensors", "--data", DATA)
    assert np.bincount(data.test_labels).tolist() == [20, 20, 20]
    assert re.search(r"40 of 60 +66.67 % .* 20 of 40$", out, re.MULTILINE)
    rows = [line.split() for line in out.splitlines()]
    start = rows.index(["label", "0", "1", "2"])
    assert rows[start + 1 : start + 4] == [
        ["0", ".", "20", "."],
        ["1", ".", "20", "."],
        ["2", ".", "20", "."],
    ]
    listed = [row for row in rows if row[-2:] == ["2", "0.000"]]
    assert len(listed) == 20
    a = 1.7159 * np.tanh(0.6666)
    assert listed[:2] == [["0", "0", "1", f"{a:.3f}", "2", "0.000"],
                          ["2", "2", "1", f"{a:.3f}", "2", "0.000"]]  # fmt: skip
    assert rows[-1] == ["and", "20", "more:", "--all", "lists", "them"]
    out = call(capsys, "n.safetensors", "--data", DATA, "--all")
    assert len(re.findall(r" 0\.000$", out, re.MULTILINE)) == 40
    assert "more" not in out


def test_weights_alone_are_evaluated_on_data_that_are_named_or_found(capsys, monkeypatch):
    named = call(capsys, WEIGHTS, "--data", DATA)
    monkeypatch.setenv("MLPCORE_DATA", str(DATA))
    assert call(capsys, WEIGHTS) == named
    assert named.splitlines()[4].split()[2:] == call(capsys, RUN).splitlines()[4].split()[2:]


def test_a_committee(capsys):
    out = call(capsys, RUN, OTHER / LAST, RUN, "--json", "c.json")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[4:7]] == [str(RUN), str(OTHER / LAST), str(RUN)]
    document = json.loads(Path("c.json").read_text())
    result = expected(WEIGHTS, OTHER / LAST, WEIGHTS)
    assert re.match(rf"committee of 3 +{result.errors} of 60 ", lines[7])
    assert "confusion matrix of the committee" in out
    assert document["committee"]["confusion"] == result.confusion.tolist()
    alone = [network["errors"] for network in document["networks"]]
    assert alone == [expected(p).errors for p in (WEIGHTS, OTHER / LAST, WEIGHTS)]


def test_json(capsys):
    call(capsys, RUN, "--json", "r.json")
    document, result = json.loads(Path("r.json").read_text()), expected(WEIGHTS)
    assert set(document) == {"data", "backend", "networks"}
    assert document["data"]["n_test"] == 60
    (network,) = document["networks"]
    wrong = result.misclassified
    assert network == {
        "path": str(RUN),
        "layer_sizes": [35, 9, 6, 3],
        "n": 60,
        "errors": result.errors,
        "error_rate": result.error_rate,
        "interval": list(result.interval),
        "second_right": result.second_right,
        "confusion": result.confusion.tolist(),
        "misclassified": [
            {
                "sample": wrong.indices[k],
                "label": wrong.labels[k],
                "guesses": wrong.guesses[k].tolist(),
                "outputs": wrong.outputs[k].tolist(),
            }
            for k in range(len(wrong))
        ],
    }


def test_figures(capsys):
    out = call(capsys, RUN, WEIGHTS, "--figures", "a/b")
    names = ["misclassified", "confusion", "learning-curves-1", "first-layer-1", "first-layer-2"]
    paths = [Path("a", "b", f"{name}.png") for name in names]
    assert out.splitlines()[-5:] == [f"figure: {path}" for path in paths]
    assert sorted(Path("a", "b").iterdir()) == sorted(paths)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_many_classes_are_no_table(capsys):
    folder = write_idx(Path("many"))
    for kind in ("train", "t10k"):
        path = folder / f"{kind}-labels-idx1-ubyte"
        n = struct.unpack(">2I", path.read_bytes()[:8])[1]
        labels = (np.arange(n) % 25).astype(np.uint8)
        path.write_bytes(struct.pack(">2I", 0x801, n) + labels.tobytes())
    write_network(Path("n.safetensors"), Network((35, 25), 0), {})
    out = call(capsys, "n.safetensors", "--data", folder)
    assert "confusion" not in out and "misclassified" in out


def test_other_data_than_those_of_the_run_are_noted(capsys):
    assert "note" not in call(capsys, RUN)
    write_idx(Path("new"), n_test=61)
    write_network(
        Path("n.safetensors"), read_network(Path(RUN, BEST))[0], {"dataset": "digits of ours"}
    )
    out = call(capsys, "n.safetensors", "--data", "new")
    assert "note: n.safetensors was trained on data called digits of ours\n" in out
    out = call(capsys, RUN, "--data", "new")
    assert f"note: {RUN} was trained on other data than these: letters as in" in out
    assert "61 test images" in out


def test_a_run_in_use_stays_as_it_is(capsys):
    def content():
        return {
            path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(RUN.rglob("*"))
        }

    before = content()
    with contextlib.closing(Run.open(RUN)):  # as a training would
        call(capsys, RUN, "--figures", "f")
    assert content() == before
    with contextlib.closing(Run.open(RUN)):
        pass


# Refusals


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "RUN|WEIGHTS"),
        (["none"], "cannot read none: No such file"),
        (["."], f". holds no {BEST}: expected a run of at least one epoch"),
        (["/dev/zero"], "/dev/zero is not a regular file"),
        ([RUN / CONFIG], "not a safetensors file"),
        ([RUN / METRICS, "--data", DATA], "not a safetensors file"),
        ([RUN, "--data", "none"], "cannot read the folder"),
        ([RUN, "--dataset", "digits"], "../run is a network of 35-9-6-3: expected 841 inputs"),
        ([WEIGHTS, "--dataset", "mnist"], "MNIST was not found"),
        ([RUN, "--backend", "mmx"], "backend 'mmx'"),
        ([RUN, "--threads", "0"], "threads 0"),
        ([RUN, "--epochs", "3"], "--epochs"),
        ([RUN, "--json", "none/x.json"], "cannot write none/x.json: No such file"),
        ([RUN, "--json", "pipe"], "cannot write pipe: expected a file or a new name"),
        *(
            ([RUN, "--json", RUN / name], f"../run/{name} belongs to a run: expected another")
            for name in RUN_FILES
        ),
        ([RUN, "--json", "."], "cannot write .: expected a file or a new name"),
        ([RUN, "--figures", "file"], "file"),
        ([RUN, "--figures", "/proc/figures"], "/proc/figures"),
    ],
)
def test_bad_arguments(capsys, argv, words):
    Path("file").touch()
    os.mkfifo("pipe")
    assert words in refusal(capsys, *argv)
    assert sorted(os.listdir()) == ["file", "pipe"]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.parametrize("sizes", [(36, 9, 3), (35, 9, 4), (35, 2)])
def test_networks_for_other_data(capsys, sizes):
    write_network(Path("n.safetensors"), Network(sizes, 0), {})
    text = refusal(capsys, "n.safetensors", "--data", DATA)
    assert f"n.safetensors is a network of {'-'.join(map(str, sizes))}: expected 35 inputs" in text
    assert "network 2 of a committee" in refusal(capsys, RUN, "n.safetensors")


def test_a_run_without_its_settings_or_metrics(capsys):
    (RUN / METRICS).unlink()
    call(capsys, RUN)  # the metrics are for the learning curves alone
    assert METRICS in refusal(capsys, RUN, "--figures", "f")
    (RUN / CONFIG).unlink()
    assert f"cannot read {RUN / CONFIG}" in refusal(capsys, RUN)


def test_a_run_with_the_weights_of_another(capsys):
    shutil.copy(OTHER / BEST, RUN / BEST)
    assert "holds a network of 35-7-3, expected 35-9-6-3" in refusal(capsys, RUN)


def test_data_of_the_run_that_are_gone(capsys):
    shutil.rmtree(DATA)
    config = json.loads((RUN / CONFIG).read_text())
    config["data"]["source"] = "/nowhere"
    (RUN / CONFIG).write_text(json.dumps(config))
    assert "/nowhere" in refusal(capsys, RUN)


def test_weights_that_are_not_finite(capsys):
    network = Network((35, 3), 0)
    network.weights[0][0, 0] = np.nan
    write_network(Path("n.safetensors"), network, {})
    assert "weights that are not finite" in refusal(capsys, "n.safetensors", "--data", DATA)


def test_outputs_that_are_not_finite(capsys):
    network = Network((35, 256, 3), 0)
    network.biases[0][...] = 1e3  # all states are 1.7159
    network.weights[1][:, :128] = 3e38  # finite, but infinite sums of both signs meet
    network.weights[1][:, 128:] = -3e38
    write_network(Path("n.safetensors"), network, {})
    with np.errstate(all="ignore"):
        text = refusal(capsys, "n.safetensors", "--data", DATA)
    assert text.startswith("error: n.safetensors: outputs: not all are finite")


def test_tensors_of_other_shapes(capsys):
    tensors = {
        "layers.0.weight": np.zeros((3, 36), np.float32),
        "layers.0.bias": np.zeros(0, np.float32),
    }
    content = save(tensors, {"format": "mlpcore network", "architecture": "35,3"})
    Path("n.safetensors").write_bytes(content)
    assert "expected F32 (3, 35)" in refusal(capsys, "n.safetensors", "--data", DATA)


fuzz = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def damage(data, content):
    """The content with a stretch replaced, or cut off, or longer."""
    position = data.draw(st.integers(0, len(content) - 1))
    stretch = data.draw(st.sampled_from([0, 1, 2, 8, len(content)]))
    damaged = content[:position] + data.draw(st.binary(max_size=9)) + content[position + stretch :]
    return damaged


def outcome(capsys, *argv):
    """The exit status, and what was printed."""
    capsys.readouterr()
    status = tool.main([str(each) for each in argv])
    return status, *capsys.readouterr()


@fuzz
@given(st.data())
def test_damaged_weights_are_refused(capsys, data):
    content = WEIGHTS.read_bytes()
    damaged = damage(data, content)
    try:
        WEIGHTS.write_bytes(damaged)
        status, out, err = outcome(capsys, RUN)
    finally:
        WEIGHTS.write_bytes(content)
    assert (status == 0) == (damaged == content)
    if status:
        assert (status, out) == (2, "")
        assert re.fullmatch(r"error: [^\n]*best\.safetensors[^\n]*\n", err)


@fuzz
@given(st.data())
@pytest.mark.parametrize("name", [CONFIG, METRICS])
def test_damaged_text_is_refused_or_read(capsys, monkeypatch, name, data):
    monkeypatch.setattr(tool, "draw", lambda folder, candidates, *rest: candidates and [])
    path = RUN / name
    content = path.read_bytes()
    try:
        path.write_bytes(damage(data, content))
        status, _, err = outcome(capsys, RUN, "--figures", "f")
    finally:
        path.write_bytes(content)
    assert status in (0, 2)
    assert re.fullmatch(r"error: [^\n]+\n" if status else "", err)


def test_a_header_that_promises_much_takes_no_memory(capsys):
    content = struct.pack("<Q", 2**40) + b"{}"
    Path("n.safetensors").write_bytes(content)
    assert "expected a header of at most" in refusal(capsys, "n.safetensors", "--data", DATA)


def test_library_and_tool_agree_on_real_digits(capsys, tmp_path):
    write_network(tmp_path / "d.safetensors", Network((841, 10), 1), {})
    call(capsys, tmp_path / "d.safetensors", "--dataset", "digits", "--json", "d.json")
    data = dataset.load(name="digits")
    network, _ = read_network(tmp_path / "d.safetensors")
    result = evaluate(network, data.test_images, data.test_labels, backends.get("scalar"))
    (found,) = json.loads(Path("d.json").read_text())["networks"]
    assert found["confusion"] == result.confusion.tolist()
