"""mlpcore/store/export.py and tools/export.py: other programs compute the same from the files."""

import contextlib
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from mlpcore import InputError, Network, backends, dataset
from mlpcore.store import export
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.run_folder import BEST, CONFIG, LAST, RUN_FILES, Run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, weights_sha256, write_network
from mlpcore.training.trainer import Trainer
from oracle import EPSILON, random_network
from small_runs import load_tool, make_config, make_pixels, same_weights

tool = load_tool("export")

#: Both sides add the same float32 products, in other orders. A sum of 841 terms makes up to 841
#: roundings of half a unit in the last place of a sum that `random_network` keeps at about 1;
#: they are as often up as down, so they add up to some sqrt(841) = 29 such: 29 * 2**-24 = 1.7e-6.
#: A layer passes on errors of the one before times 1.15 (its slope) times the norm of a row
#: (1 / sqrt(3)), which is less than 1. So 1e-5 leaves a factor of three; mistakes show at more:
#: 0.667 for 0.6666 makes 6e-4, a pixel's interpolation by the wrong rule 1e-2.
TOLERANCE = 1e-5

MNIST = NetworkInput("MNIST", (29, 29), (28, 28))
DIGITS = NetworkInput(dataset.EMBEDDED, (29, 29), (8, 8))


def trained_network(network, network_input, **metadata):
    return TrainedNetwork(Path("net.safetensors"), network, network_input, metadata)


def session(content):
    """ONNX Runtime, on one thread and without its warnings, for the content of a file."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_onnx(content, pixels):
    """The outputs for pixels (n, h, w)."""
    (outputs,) = session(content).run(None, {"pixels": pixels})
    return outputs


def predictions(network, images):
    """Our own, in float32, for images (n, h, w)."""
    backend = backends.get("scalar", 1)
    flat = images.reshape(len(images), network.layer_sizes[0])
    return backend.predict(backend.load(network), backend.put(flat))


def check_equal(content, network, pixels, images):
    """ONNX's outputs for pixels are ours for images, at any size of batch."""
    expected = predictions(network, images)
    onnx_session = session(content)
    for n in sorted({len(images), *range(min(len(images), 3))}):
        (outputs,) = onnx_session.run(None, {"pixels": pixels[:n]})
        assert outputs.dtype == np.float32
        assert outputs.shape == (n, network.layer_sizes[-1])
        np.testing.assert_allclose(outputs, expected[:n], rtol=0, atol=TOLERANCE)


def write_idx(folder, height, width):
    """Data of three classes in IDX files, of 40 images for training and 9 for the test."""
    folder.mkdir()
    for i, n in enumerate((40, 9)):
        images, labels = make_pixels(n, i, height=height, width=width)
        for file, array in zip(dataset.FILES[2 * i :], (images, labels)):
            header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
            (folder / file).write_bytes(header + array.tobytes())
    return dataset.load(folder), images


def train(folder, data, **changes):
    """A finished run of one epoch in a folder."""
    backend = backends.get("scalar", 1)
    config = make_config(backend="scalar", epochs=1, **changes)
    trainer = Trainer(config, data, backend)
    run = Run.create(folder, config, data, backend.description, trainer.state)
    trainer.observers = (run,)
    with contextlib.closing(run):
        assert trainer.run()
    return folder


# What is exported computes the same


@pytest.mark.parametrize("hidden", [(), (17,), (64, 33), (40,) * 9], ids=len)
def test_onnx_of_several_depths(hidden):
    pytest.importorskip("onnx")
    network = random_network((841, *hidden, 10), len(hidden))
    pixels = np.random.default_rng(3).integers(0, 256, (33, 28, 28), np.uint8)
    images = dataset.resize(dataset.normalise(pixels), 29, 29)
    check_equal(export.to_onnx(trained_network(network, MNIST)), network, pixels, images)


@pytest.mark.parametrize("sides", [(6, 9), (7, 5), (9, 4), (2, 2), (12, 30)], ids=str)
def test_onnx_of_data_of_any_sides(tmp_path, sides):
    """Even, odd and mixed sides, as `dataset.load` brings them from their files."""
    pytest.importorskip("onnx")
    data, pixels = write_idx(tmp_path / "data", *sides)
    trained = TrainedNetwork.read(train(tmp_path / "run", data))
    assert trained.input.pixel_shape == sides
    check_equal(export.to_onnx(trained), trained.network, pixels, data.test_images)


def test_onnx_of_real_digits(tmp_path):
    """From scikit-learn's 8 x 8 pixels of 0 to 16; after an epoch, so with weights as learned."""
    pytest.importorskip("onnx")
    from sklearn.datasets import load_digits

    data = dataset.load(name="digits")
    trained = TrainedNetwork.read(train(tmp_path / "run", data, hidden_layers=(30,)))
    assert trained.input == DIGITS
    digits = load_digits()
    test = np.concatenate([np.flatnonzero(digits.target == k)[4::5] for k in range(10)])
    pixels = digits.images[np.sort(test)].astype(np.uint8)
    content = export.to_onnx(trained)
    check_equal(content, trained.network, pixels, data.test_images)
    # It has learned something, so that equal outputs are not those of any network.
    errors = np.count_nonzero(run_onnx(content, pixels).argmax(axis=1) != data.test_labels)
    assert errors < 0.6 * len(pixels)


@pytest.mark.parametrize(("network_input", "white"), [(MNIST, 255), (DIGITS, 16)])
def test_onnx_scales_every_grey_value(network_input, white):
    """With the identity for weights, the outputs are the scaled images, pixel by pixel."""
    pytest.importorskip("onnx")
    network = Network((841, 841))
    network.weights[0][...] = np.eye(841)
    network.biases[0][...] = 0
    rng = np.random.default_rng(5)
    height, width = network_input.pixel_shape
    flat = np.arange(white + 1)[:, None, None] + np.zeros((height, width), int)
    pixels = np.concatenate([flat, rng.integers(0, white + 1, (50, height, width))])
    pixels = pixels.astype(np.uint8)
    if network_input == MNIST:
        images = dataset.resize(dataset.normalise(pixels), 29, 29)
    else:
        images = np.full((len(pixels), 29, 29), -1, np.float32)
        box = dataset.normalise(pixels * (255 / 16))
        images[:, 4:25, 4:25] = dataset.resize(box, 21, 21)
    outputs = run_onnx(export.to_onnx(trained_network(network, network_input)), pixels)
    expected = 1.7159 * np.tanh(0.6666 * images.reshape(len(images), -1).astype(np.float64))
    # Two interpolations, each of three roundings of values up to 2, on either side, through a
    # slope of 1.15; then three roundings and a tanh of a few units in the last place.
    tolerance = (2 * 2 * 3 * 2 * 1.15 + 2 * 8) * EPSILON
    assert tolerance < 3e-6
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=tolerance)


@given(
    sides=st.tuples(*[st.integers(2, 12)] * 4),
    hidden=st.lists(st.integers(1, 40), max_size=4),
    n=st.sampled_from([0, 1, 2, 17, 513]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25)
def test_onnx_of_any_shape(sides, hidden, n, seed):
    pytest.importorskip("onnx")
    h, w, height, width = sides
    network = random_network((height * width, *hidden, 1 + seed % 5), seed)
    pixels = np.random.default_rng(seed).integers(0, 256, (n, h, w), np.uint8)
    images = dataset.resize(dataset.normalise(pixels), height, width)
    content = export.to_onnx(trained_network(network, NetworkInput("x", (height, width), (h, w))))
    check_equal(content, network, pixels, images)


# What the files say


def test_onnx_says_what_it_is():
    onnx = pytest.importorskip("onnx")
    network = random_network((841, 7, 10), 0)
    trained = trained_network(network, MNIST, epoch="3", seed="5", progress="{}", metrics="{}")
    content = export.to_onnx(trained)
    assert content == export.to_onnx(trained)
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 13)]
    assert {each.key: each.value for each in model.metadata_props} == {
        "version": export.mlpcore.__version__,
        "architecture": "841,7,10",
        "classes": "10",
        "input": "grey values 0 to 255 of 28 x 28 pixels, row by row",
        "white": "255",
        "dataset": "MNIST",
        "weights_sha256": weights_sha256(network),
        "epoch": "3",
        "seed": "5",
    }
    for part in ("841-7-10", "1.7159 tanh(0.6666 a)", "0 to 255 of 28 x 28"):
        assert part in model.doc_string
    names = {each.key for each in model.metadata_props}
    assert [name for name in names if f"``{name}``" not in export.__doc__] == []
    weights = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    assert np.array_equal(weights["layers.1.weight"], network.weights[1])
    shapes = {each.name: (each.type, each.shape) for each in session(content).get_inputs()}
    assert shapes == {"pixels": ("tensor(uint8)", ["n", 28, 28])}
    shapes = {each.name: (each.type, each.shape) for each in session(content).get_outputs()}
    assert shapes == {"outputs": ("tensor(float)", ["n", 10])}


def test_onnx_refuses_floats_and_other_sides():
    runtime = pytest.importorskip("onnxruntime")
    content = export.to_onnx(trained_network(random_network((841, 10), 0), MNIST))
    errors = runtime.capi.onnxruntime_pybind11_state.InvalidArgument
    for pixels in (np.zeros((1, 28, 28), np.float32), np.zeros((1, 29, 29), np.uint8)):
        with pytest.raises(errors):
            run_onnx(content, pixels)


def test_safetensors_holds_the_network_alone(tmp_path):
    data, _ = write_idx(tmp_path / "data", 6, 9)
    run = train(tmp_path / "run", data)
    path = tmp_path / "net.safetensors"
    export.write_safetensors(TrainedNetwork.read(run), path)
    network, metadata = read_network(path)
    best, recorded = read_network(run / BEST)
    assert same_weights(network, best)
    assert recorded.keys() - metadata.keys() == {"metrics"}
    assert metadata.items() <= recorded.items()
    again = TrainedNetwork.read(path)
    assert again.input == TrainedNetwork.read(run).input == NetworkInput("data", (7, 9), (6, 9))
    twice = tmp_path / "twice.safetensors"
    for source in (run / BEST, path):
        export.write_safetensors(TrainedNetwork.read(source), twice)
        assert read_network(twice)[1] == metadata
        assert same_weights(read_network(twice)[0], network)
    export.write_safetensors(TrainedNetwork.read(run / LAST), twice)
    assert read_network(twice)[1].keys() == metadata.keys()


def test_what_is_assumed_is_not_written_as_a_fact(tmp_path):
    write_network(tmp_path / "a.safetensors", Network((841, 10), 1), {})
    trained = TrainedNetwork.read(tmp_path / "a.safetensors")
    assert trained.input.assumed
    export.write_safetensors(trained, tmp_path / "b.safetensors")
    with safe_open(tmp_path / "b.safetensors", framework="np") as file:
        assert file.metadata().keys() == {"format", "version", "architecture", "sha256"}
    pytest.importorskip("onnx")
    assert b"28 x 28 pixels, row by row (assumed)" in export.to_onnx(trained)


# The tool


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A working folder with a file of weights."""
    monkeypatch.chdir(tmp_path)
    metadata = MNIST.to_metadata()
    write_network(Path("net.safetensors"), random_network((841, 12, 10), 1), metadata)
    return Path("net.safetensors")


def outcome(capsys, *argv):
    """The exit status, and what was printed."""
    capsys.readouterr()
    status = tool.main([str(each) for each in argv])
    return status, *capsys.readouterr()


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments, leaving nothing."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    status, out, err = outcome(capsys, *argv)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()} == {
        path: time for path, time in before.items() if path.is_file()
    }
    return err


def test_the_tool_writes_both(capsys, weights):
    pytest.importorskip("onnx")
    arguments = weights, "--onnx", "a.onnx", "--safetensors", "a.safetensors"
    for _ in range(2):  # the second time it replaces them
        assert outcome(capsys, *arguments) == (
            0,
            "a.onnx: 841-12-10, of grey values 0 to 255 of 28 x 28 pixels, row by row\n"
            "a.safetensors: 841-12-10, weights and biases\n",
            "",
        )
    assert Path("a.onnx").read_bytes() == export.to_onnx(TrainedNetwork.read(weights))
    assert same_weights(read_network(Path("a.safetensors"))[0], read_network(weights)[0])
    assert {path.name for path in Path().iterdir()} == {
        "net.safetensors",
        "a.onnx",
        "a.safetensors",
    }


def test_the_tool_tells_what_it_assumes(capsys, weights):
    write_network(weights, Network((841, 10), 1), {})
    status, _, err = outcome(capsys, weights, "--safetensors", "a.safetensors")
    assert status == 0
    assert err == (
        "note: net.safetensors does not tell its data: assumed grey values 0 to 255 of "
        "28 x 28 pixels, row by row\n"
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["net.safetensors"], "expected --onnx FILE or --safetensors FILE"),
        (["net.safetensors", "--safetensors", "net.safetensors"], "is the network itself"),
        (["net.safetensors", "--safetensors", "link"], "cannot write link, a link: expected"),
        (["net.safetensors", "--safetensors", "hard-link"], "is the network itself"),
        (["net.safetensors", "--safetensors", "no/folder"], "cannot write no/folder"),
        (["net.safetensors", "--safetensors", "folder"], "expected a file or a new name"),
        *(
            (["net.safetensors", "--safetensors", f"run/{name}"], "belongs to a run")
            for name in (*RUN_FILES, CONFIG.upper())
        ),
        (["none", "--safetensors", "a"], "cannot read none"),
        (["folder", "--safetensors", "a"], f"holds no {BEST}"),
        (["text", "--safetensors", "a"], "not a safetensors file"),
        (["net.safetensors", "--safetensors", "a\0b"], "without a zero byte"),
        (["a\0b", "--safetensors", "a"], "without a zero byte"),
        (["net.safetensors", "--onxx", "a"], "--onxx"),
    ],
)
def test_refusals(capsys, weights, arguments, part):
    Path("folder").mkdir()
    Path("run").mkdir()
    Path("run", CONFIG).touch()
    Path("text").write_text("no network")
    Path("other").touch()
    Path("link").symlink_to("other")
    Path("hard-link").hardlink_to(weights)
    assert part in refusal(capsys, *arguments)


def test_one_file_for_both_formats_is_refused(capsys, weights):
    pytest.importorskip("onnx")
    assert "named twice" in refusal(capsys, weights, "--onnx", "a", "--safetensors", "./a")


def test_unknown_sides_are_refused(capsys, weights):
    write_network(weights, Network((35, 3), 1), {})
    assert "35 inputs of unknown height and width" in refusal(capsys, weights, "--safetensors", "a")


def test_more_than_onnx_takes_is_refused(monkeypatch, weights):
    """A file of more than 2 GiB; here the limit is where the weights end."""
    pytest.importorskip("onnx")
    trained = TrainedNetwork.read(weights)
    n_bytes = 4 * (842 * 12 + 13 * 10)
    monkeypatch.setattr(export, "MAX_BYTES", export.MAX_OTHER_BYTES + n_bytes)
    assert export.to_onnx(trained)
    monkeypatch.setattr(export, "MAX_BYTES", export.MAX_OTHER_BYTES + n_bytes - 1)
    with pytest.raises(InputError, match=f"841-12-10 has {n_bytes:,} bytes of weights: expected"):
        export.to_onnx(trained)


def test_without_onnx_one_line_tells_the_extra(capsys, monkeypatch, weights):
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    text = refusal(capsys, weights, "--onnx", "a.onnx", "--safetensors", "a.safetensors")
    assert "'export'" in text
    assert "pip install -e '.[export]'" in text
    assert refusal(capsys, "none", "--onnx", "a.onnx") == text  # before anything is read
    assert outcome(capsys, weights, "--safetensors", "a.safetensors")[0] == 0


def test_an_onnx_that_is_broken_is_told_from_a_missing_one(capsys, monkeypatch, weights):
    Path("onnx").mkdir()
    Path("onnx", "__init__.py").write_text("raise ImportError('no protobuf', name='google')")
    monkeypatch.delitem(sys.modules, "onnx", raising=False)
    monkeypatch.syspath_prepend(os.getcwd())
    text = refusal(capsys, weights, "--onnx", "a.onnx")
    assert text == "error: the package onnx cannot be imported: no protobuf\n"


def test_a_full_disk_leaves_the_old_file(capsys, monkeypatch, weights):
    Path("a.safetensors").write_text("old")

    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    text = refusal(capsys, weights, "--safetensors", "a.safetensors")
    assert "No space left on device" in text
    assert Path("a.safetensors").read_text() == "old"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_weights_are_refused(capsys, weights, data):
    """Cut off anywhere, or with any bit the other way round."""
    original = weights.read_bytes()
    content = bytearray(original)
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:position]
    else:
        content[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        weights.write_bytes(content)
        assert "net.safetensors" in refusal(capsys, weights, "--safetensors", "a.safetensors")
    finally:
        weights.write_bytes(original)


def test_as_a_command(weights):
    """Where nothing but the file leads to the library; a pipe is no place for a file."""
    script = Path(__file__).parents[2] / "tools" / "export.py"
    command = [sys.executable, script, weights, "--safetensors"]
    done = subprocess.run([*command, "a.safetensors"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    os.mkfifo("pipe")
    done = subprocess.run([*command, "pipe"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cannot write pipe: expected a file or a new name\n"
