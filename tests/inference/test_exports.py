"""Exports: other programs compute from the files what Python does; refusals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import mlpcore
from mlpcore import OnlineMLPClassifier, StreamMLPClassifier, TrainedClassifier, backends
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.network.activation import ACTIVATIONS
from mlpcore.store import onnx_graph
from mlpcore.store.documents import to_metadata
from mlpcore.store.export import to_onnx
from mlpcore.store.run_folder import BEST
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, weights_sha256, write_network
from oracle import random_network
from small_runs import DATA, finish_run, make_config, refusal, same_weights

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
ignored = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
pytestmark = [pytest.mark.usefixtures("in_folder"), ignored]

#: ONNX Runtime adds in float32: sums of 841 terms, about 1, have errors of some 1.7e-6, and so have
#: the pixels. Mistakes are greater: 0.667 in place of 0.6666 gives 6e-4.
TOLERANCE = 1e-5


def session_of(content):
    """ONNX Runtime, on one thread and without its warnings, for a file or its content."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def metadata_of(model):
    return {each.key: each.value for each in model.metadata_props}


SHARES, Y4 = np.random.default_rng(0).random((40, 6, 7)), np.arange(40) % 4

#: Pixels of each kind, from 0 to nearly 1 or elsewhere.
KINDS = {
    "bytes": (SHARES * 256).astype(np.uint8),
    "floats 0 to 16": SHARES * 16,
    "float32 0 to 1": SHARES.astype(np.float32),
    "bool": SHARES > 0.5,
    "negative": SHARES * 4 - 9,
    "whole numbers": (SHARES * 2**40 - 7).astype(np.int64),
    "a narrow range": 1e6 + SHARES,  # too narrow for float32
    "tiny": SHARES * 1e-31,
    "two columns": SHARES[:, :, :2] * 3,
}


#: A network of each range and loss, one as if it were trained on a part, and of each activation.
NETWORKS = [
    ("signed", "tanh", "squared", (), 0),
    ("unit", "relu", "cross-entropy", (8,), 0),
    ("signed", "relu", "squared", (40, 3), 10),
    *(("signed", each, "squared", (6,), 0) for each in ACTIVATIONS),
]
OF_EACH_ACTIVATION = [*range(3, len(NETWORKS))]


def network_for(kind, k=0):
    """A network with random weights, as if it were trained on such pixels."""
    input_range, activation, loss, hidden, first = NETWORKS[k]
    arrays = KINDS[kind][first:], Y4[first:], KINDS[kind][:9], Y4[:9]
    pixels = structs.replace(mlpcore.Dataset.from_arrays(*arrays).pixels, input_range=input_range)
    sizes = math.prod(pixels.image_shape), *hidden, 4
    network = random_network(sizes, k, activation=activation, loss=loss)
    return TrainedNetwork(Path(f"{k}"), network, pixels, {})


@pytest.mark.parametrize("members", [[0], [1], [2], [0, 2], [2, 1, 0], OF_EACH_ACTIVATION], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_onnx_runtime_gives_what_python_gives(kind, members):
    """Of any type of pixels, size, range, activation and loss, and of committees."""
    networks = [network_for(kind, each) for each in members]
    classifier = TrainedClassifier(networks, backends.get("reference"))
    session = session_of(to_onnx(*networks))
    for n in (40, 1, 0):
        pixels = KINDS[kind][:n]
        given = pixels.astype(networks[0].pixels.dtype)
        assert np.issubdtype(given.dtype, np.floating) or pixels.dtype == np.uint8
        (found,) = session.run(["outputs"], {"pixels": given})
        expected = classifier.outputs(classifier.to_images(pixels))
        np.testing.assert_allclose(found, expected.reshape(n, 4), rtol=0, atol=TOLERANCE)


def test_members_of_other_units():
    """Both from black to white, or not."""
    kinds = "bytes", "float32 0 to 1", "floats 0 to 16"
    backend, *members = backends.get("cpu"), *map(network_for, kinds)
    assert "is a network for pixels from" in refusal(TrainedClassifier, members, backend)
    first, second = (TrainedClassifier([member], backend) for member in members[:2])
    images = first.to_images(KINDS["bytes"])
    expected = (first.outputs(images) + second.outputs(images)) / 2
    np.testing.assert_allclose(TrainedClassifier(members[:2], backend).outputs(images), expected)
    pixels = structs.replace(members[2].pixels, value_range=(-2.0, 14.0))
    pair = [members[2], TrainedNetwork(Path("n"), members[2].network, pixels, {})]
    values = KINDS[kinds[2]]
    alone = [TrainedClassifier([each], backend) for each in pair]
    expected = np.mean([each.outputs(each.to_images(values)) for each in alone], axis=0)
    for both in TrainedClassifier(pair, backend), TrainedClassifier(pair[::-1], backend):
        found = both.outputs(both.to_images(values))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_onnx_says_what_it_is():
    facts = {"activation": "relu", "loss": "cross-entropy"}
    network = random_network((841, 7, 10), 0, **facts)
    known = {"data": "MNIST", "epoch": "3", "seed": "5"}
    trained = TrainedNetwork(Path("n"), network, MNIST_PIXELS, known | {"progress": "{}"})
    model = onnx.load_model_from_string(to_onnx(trained))
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 13)]
    facts |= {"version": mlpcore.__version__, "architecture": "841,7,10", "pixels": MNIST_PIXELS}
    facts |= {"target": 1.0, "classes": [*range(10)], "weights_sha256": weights_sha256(network)}
    assert metadata_of(model) == known | to_metadata(**facts)
    both = metadata_of(onnx.load_model_from_string(to_onnx(trained, trained)))
    assert json.loads(both["classes"]) == [*range(10)]
    assert json.loads(both["members"]) == [metadata_of(model)] * 2


def test_runs_paths_and_committees():
    """All ways to name the same networks give the same files, without the place in a run."""
    finish_run(Path("run"), make_config(epochs=1, backend="scalar"), DATA)
    best, contents = TrainedNetwork.read("run"), set()
    known = best.metadata.items() - {("metrics", best.metadata["metrics"])}
    for each in ("run", Path("run"), f"run/{BEST}", ["run"], mlpcore.load("run")):
        mlpcore.export(each, "n.onnx")
        contents.add(Path("n.onnx").read_bytes())
        mlpcore.export(each, "n.safetensors")
        found = TrainedNetwork.read("n.safetensors")
        assert found.metadata.items() & best.metadata.items() == known
        assert same_weights(found.network, best.network)
    assert len(contents) == 1
    mlpcore.export(["run", "run"], "n.ONNX")
    assert "Committee of 2" in onnx.load("n.ONNX").doc_string


X = np.random.default_rng(1).normal(size=(90, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)

#: What the labels 0, 1 and 2 stand for, and the type in the file.
LABELS = [
    (np.array([3, -1, 7]), np.int64),
    (np.array([0, 1, 255], np.uint8), np.int64),
    (np.array(["bee", "", "wåsp"]), object),
    (np.array(["bee", "a", "wasp"], object), object),
    (np.array([0.0, 5.0, 2.0]), np.float64),
    (np.array([False, True, True]), np.bool_),
]


def fitted(y=Y, **settings):
    return OnlineMLPClassifier((9,), max_iter=3, random_state=0, **settings).fit(X, y)


def exported(model, samples):
    """What an estimator's ONNX file answers, and the metadata of both of its files, which agree."""
    mlpcore.export(model, "n.onnx")
    mlpcore.export(model, "n.safetensors")
    network, known = read_network("n.safetensors")
    assert same_weights(network, model.network_)
    metadata = metadata_of(onnx.load("n.onnx"))
    assert {metadata[key] == known[key] for key in metadata.keys() & known.keys()} == {True}
    return *session_of("n.onnx").run(None, {"X": samples}), known | metadata


@pytest.mark.parametrize(("names", "dtype"), LABELS)
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_estimators(names, dtype, loss):
    model = fitted(names[Y], loss=loss, target=1.2 if loss == "squared" else 1)
    expected, answers = model.predict_proba(X), model.predict(X)
    model.feature_names_in_ = np.array([*"edcba"], object)  # as of a data frame
    for n in (len(X), 0):
        label, probabilities, metadata = exported(model, X[:n])
        assert label.dtype == dtype and probabilities.shape == (n, len(model.classes_))
        np.testing.assert_array_equal(label, answers[:n])
        np.testing.assert_allclose(probabilities, expected[:n], rtol=0, atol=TOLERANCE)
    assert json.loads(metadata["classes"]) == model.classes_.tolist()
    assert json.loads(metadata["features"]) == [*"edcba"]


@pytest.mark.parametrize("targets", [X[:, :2] * [9.0, 1e-3] + [1e6, 0], X[:, 0] * 5])
def test_regressors(targets):
    """Their outputs have the units of the targets, in float64."""
    model = mlpcore.OnlineMLPRegressor((9,), max_iter=3, random_state=0).fit(X, targets)
    outputs, metadata = exported(model, X)
    expected = model.predict(X).reshape(len(X), -1)
    tolerance = TOLERANCE * np.std(targets, axis=0)
    assert outputs.dtype == np.float64 and (np.abs(outputs - expected) < tolerance).all()
    assert json.loads(metadata["means"]) == model._moments.scale[0].tolist()
    assert "no pixels" in refusal(mlpcore.load, "n.safetensors")


def test_samples_with_several_labels():
    both = np.column_stack([Y > 0, Y < 2])
    model = fitted(both)
    label, probabilities, metadata = exported(model, X)
    assert label.dtype == np.int64 and np.array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=TOLERANCE)
    assert metadata["loss"] == "binary-cross-entropy"


@pytest.mark.parametrize("hidden", [(), (9,), (9, 7)])
@pytest.mark.parametrize("kind", ["names", "numbers"])
@pytest.mark.parametrize("names", [("wasp", "bee"), (7, -1), (True, False), tuple(np.arange(2))])
def test_learners_for_streams(kind, names, hidden):
    """Features are in the order in which they became known, and scaled as for the next sample."""

    def sample(row):
        return dict(zip("cab", row.tolist())) if kind == "names" else row

    model, regressor = StreamMLPClassifier(hidden), mlpcore.StreamMLPRegressor(hidden)
    rows = X[:, :3].astype(float) * 3 + [1, 1e6, 1]  # where float32 is too coarse
    assert "no sample" in refusal(mlpcore.export, model, "n.onnx")
    for row, y in zip(rows, Y.tolist()):
        model.learn_one(sample(row), names[y == 0])
        regressor.learn_one(sample(row), row[0] * row[2] + 1e6)
    features = json.loads(exported(model, rows)[2]["features"])
    order = ["cab".index(name) if kind == "names" else int(name) for name in features]
    rows[:9, 1] = np.nan
    rows[9:40] *= 4  # some are cut
    label, probabilities, metadata = exported(model, rows[:, order])
    assert json.loads(metadata["classes"]) == model.classes_
    assert label.tolist() == [model.predict_one(sample(row)) for row in rows]
    expected = [list(model.predict_proba_one(sample(row)).values()) for row in rows]
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=TOLERANCE)
    found, _ = exported(regressor, rows[:, order])
    expected = [regressor.predict_one(sample(row)) for row in rows]
    tolerance = TOLERANCE * regressor._for_export().scale[1][0]
    np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=tolerance)


def test_what_is_refused(monkeypatch):
    """ONNX files hold 2 GiB at most. Here the limit is a byte below the size of some weights."""
    network = random_network((841, 10), 1)
    write_network("a.safetensors", network, to_metadata(pixels=MNIST_PIXELS))
    copies, mixed = mlpcore.load("a.safetensors", copies=2), StreamMLPClassifier()
    for label in ("1", 1):
        mixed.learn_one([0.5], label)
    for model, path, part in [
        ("a.safetensors", "a.h5", "a.h5: expected a name that ends in"),
        ("a.safetensors", "a.safetensors", "is the network itself"),
        (5, "a.onnx", "5: expected an estimator"),
        (network, "a.onnx", "Network((841, 10)): expected an estimator"),
        (["a.safetensors"] * 2, "b.safetensors", "2 networks"),
        (copies, "a.onnx", "copies 2"),
        (mixed, "a.onnx", "classes of the type object"),
    ]:
        assert part in refusal(mlpcore.export, model, path)
    with pytest.raises(ValueError, match="not fitted"):
        mlpcore.export(OnlineMLPClassifier(), "a.onnx")
    for path, precision in (("b.onnx", "float16"), ("b.safetensors", "int8")):
        assert precision in refusal(mlpcore.export, "a.safetensors", path, precision=precision)
    assert [path.name for path in Path().iterdir()] == ["a.safetensors"]
    monkeypatch.setattr(onnx_graph, "MAX_WEIGHT_BYTES", 4 * network.n_parameters - 1)
    message = refusal(mlpcore.export, "a.safetensors", "a.onnx")
    assert "bytes of weights: expected at most" in message
