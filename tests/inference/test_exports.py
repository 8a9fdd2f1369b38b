"""`mlpcore.export`: estimators, committees, runs and files; refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import mlpcore
from mlpcore import OnlineMLPClassifier, StreamMLPClassifier
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.store.documents import to_metadata
from mlpcore.store.run_folder import BEST
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from oracle import random_network
from small_runs import DATA, finish_run, make_config, refusal, same_weights

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 5)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)

#: What the labels 0, 1 and 2 stand for, and the type in the file.
LABELS = {
    "int64": (np.array([3, -1, 7]), np.int64),
    "uint8": (np.array([0, 1, 255], np.uint8), np.int64),
    "strings": (np.array(["bee", "", "wåsp"]), object),
    "objects": (np.array(["bee", "a", "wasp"], object), object),
    "floats": (np.array([0.0, 5.0, 2.0]), np.float64),
    "bool": (np.array([False, True, True]), np.bool_),
}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fitted(y=Y, **settings):
    return OnlineMLPClassifier((9,), max_iter=3, random_state=0, **settings).fit(X, y)


def run_onnx(path, samples):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["label", "probabilities"], {"X": samples})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_estimators(labels, loss):
    names, dtype = LABELS[labels]
    model = fitted(names[Y], loss=loss, target=1.2 if loss == "squared" else 1)
    mlpcore.export(model, "n.onnx")
    for n in (len(X), 1, 0):
        label, probabilities = run_onnx("n.onnx", X[:n])
        assert label.dtype == dtype and probabilities.shape == (n, len(model.classes_))
        if n:
            np.testing.assert_array_equal(label, model.predict(X[:n]))
            expected = model.predict_proba(X[:n])
            np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)
    metadata = {each.key: each.value for each in onnx.load("n.onnx").metadata_props}
    assert json.loads(metadata["classes"]) == model.classes_.tolist()
    mlpcore.export(model, "n.safetensors")
    network, known = read_network("n.safetensors")
    assert same_weights(network, model.network_)
    assert known["classes"] == metadata["classes"]


def test_a_stream_s_weights_are_those_of_its_last_sample():
    model = OnlineMLPClassifier((9,), random_state=0).partial_fit(X[:5], Y[:5], classes=range(3))
    for k in range(5, 9):
        model.partial_fit(X[k : k + 1], Y[k : k + 1])
        mlpcore.export(model, "n.onnx")
        _, probabilities = run_onnx("n.onnx", X)
        expected = model.predict_proba(X)
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_names_of_features():
    model = fitted()
    model.feature_names_in_ = np.array([*"edcba"], object)  # as of a data frame
    mlpcore.export(model, "n.onnx")
    metadata = {each.key: each.value for each in onnx.load("n.onnx").metadata_props}
    assert json.loads(metadata["features"]) == [*"edcba"]


#: Samples of a stream from rows of numbers, and the settings of what learns them.
STREAMS = {
    "names": (lambda row: dict(zip("cab", row.tolist())), {}),
    "places": (lambda row: row.tolist(), {}),
    "not standardised": (lambda row: row, {"standardise": False}),
}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    "names", [("wasp", "bee"), (7, -1), (True, False), (np.int64(3), np.int64(4))]
)
def test_classifiers_for_streams(kind, names):
    """Features are in the order in which they became known, and scaled as for the next sample."""
    sample, settings = STREAMS[kind]
    model, rows = StreamMLPClassifier(**settings), X[:, :3] * 3 + 1
    assert "no sample" in refusal(mlpcore.export, model, "n.onnx")
    for row, y in zip(rows, Y.tolist()):
        model.learn_one(sample(row), names[y == 0])
    mlpcore.export(model, "n.onnx")
    metadata = {each.key: each.value for each in onnx.load("n.onnx").metadata_props}
    assert json.loads(metadata["classes"]) == model.classes_
    features = json.loads(metadata["features"])
    order = ["cab".index(name) if kind == "names" else int(name) for name in features]
    label, probabilities = run_onnx("n.onnx", 4 * rows[:, order])  # some are cut
    assert label.tolist() == [model.predict_one(sample(4 * row)) for row in rows]
    expected = [list(model.predict_proba_one(sample(4 * row)).values()) for row in rows]
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-5)


def test_runs_paths_and_committees():
    """All ways to name the same networks give the same files."""
    finish_run(Path("run"), make_config(epochs=1, backend="scalar"), DATA)
    best, contents = TrainedNetwork.read("run"), set()
    for each in ("run", Path("run"), f"run/{BEST}", ["run"], mlpcore.load("run")):
        mlpcore.export(each, "n.onnx")
        contents.add(Path("n.onnx").read_bytes())
        mlpcore.export(each, "n.safetensors")
        found = TrainedNetwork.read("n.safetensors")
        assert (found.pixels, found.classes) == (best.pixels, best.classes)
        assert same_weights(found.network, best.network)
    assert len(contents) == 1
    mlpcore.export(["run", "run"], "n.ONNX")
    assert "Committee of 2" in onnx.load("n.ONNX").doc_string
    mlpcore.export("run", "half.safetensors", precision="float16")
    with safe_open("half.safetensors", "numpy") as file:
        assert file.get_tensor("layers.0.weight").dtype == np.float16


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_refused():
    network = random_network((841, 10), 1)
    write_network("a.safetensors", network, to_metadata(data="MNIST", pixels=MNIST_PIXELS))
    odd = fitted(np.array([(0, 1), (1, 2), (2, 0)], dtype="i,i")[Y])
    copies, mixed = mlpcore.load("a.safetensors", copies=2), StreamMLPClassifier()
    for label in ("1", 1):
        mixed.learn_one([0.5], label)
    for model, path, part, *more in [
        ("a.safetensors", "a.h5", "a.h5: expected a name that ends in"),
        ("a.safetensors", "", "''"),
        ("a.safetensors", "a.safetensors", "is the network itself"),
        ("a.safetensors", "no/a.onnx", "no"),
        ("b.safetensors", "a.onnx", "b.safetensors"),
        (5, "a.onnx", "int: expected a classifier"),
        (network, "a.onnx", "Network: expected a classifier"),
        (["a.safetensors"] * 2, "b.safetensors", "2 networks"),
        (copies, "a.onnx", "copies 2"),
        (odd, "a.onnx", "classes of the type"),
        (mixed, "a.onnx", "classes of the type object"),
        (mixed, "b.safetensors", "classes of the type object"),
    ]:
        assert part in refusal(mlpcore.export, model, path, *more)
    with pytest.raises(ValueError, match="not fitted"):
        mlpcore.export(OnlineMLPClassifier(), "a.onnx")
    for path, precision in (("b.onnx", "float16"), ("b.safetensors", "int8")):
        with pytest.raises(mlpcore.InputError, match=precision):
            mlpcore.export("a.safetensors", path, precision=precision)
    assert [path.name for path in Path().iterdir()] == ["a.safetensors"]
