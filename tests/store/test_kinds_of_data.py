"""Kinds of data: exported files, and networks as files, see what Python sees.

`tests/robustness/test_onnx_files.py` draws any type and range, and committees.
"""

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

import mlpcore
from mlpcore import Dataset, TrainedClassifier, backends
from mlpcore.store.trained import TrainedNetwork
from oracle import random_network
from small_runs import refusal

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

#: As in test_exported_files.py.
TOLERANCE = 1e-5

RNG = np.random.default_rng(0)
SHARES = RNG.random((60, 6, 7))  # from 0 to nearly 1
LABELS = np.arange(60) % 3

#: Pixels of each kind; and the labels, if they are not 0, 1 and 2.
KINDS = {
    "bytes": ((SHARES * 256).astype(np.uint8),),
    "floats 0 to 16": (SHARES * 16,),
    "float32 0 to 1": (SHARES.astype(np.float32),),
    "floats -1 to 1": (SHARES * 2 - 1,),
    "uint16": ((SHARES * 65536).astype(np.uint16),),
    "bool": (SHARES > 0.5,),
    "negative": (SHARES * 4 - 9,),
    "strings": ((SHARES * 99).astype(int), np.array(["bee", "fly", "wasp"])),
    "float labels": (SHARES * 3, np.array([0.5, 1.5, 2.5])),
}

#: How the network sees its images: their range.
WAYS = {"signed": {}, "unit": {"input_range": "unit"}}


def trained_on(kind, seed=1, loss="squared", part=slice(None), path="n.safetensors", **way):
    """A network with random weights, as if it were trained on a part of the data; the data."""
    pixels, *names = KINDS[kind]
    labels = names[0][LABELS] if names else LABELS
    data = Dataset.from_arrays(pixels[part], labels[part], pixels[:9], labels[:9])
    seen = structs.replace(data.pixels, **way)
    network = random_network((data.n_inputs, 8, 3), seed, loss=loss)
    return TrainedNetwork(Path(path), network, seen, {}, classes=data.classes), data


def classifier_of(*networks):
    return TrainedClassifier(networks, backends.get("reference"))


def run_onnx(path, pixels):
    """The outputs of a file for pixels, which become those of the type that it takes."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    types = {"uint8": np.uint8, "float": np.float32, "double": np.float64}
    dtype = types[session.get_inputs()[0].type[7:-1]]
    assert np.issubdtype(dtype, np.floating) or pixels.dtype == dtype
    return session.run(["outputs"], {"pixels": pixels.astype(dtype)})[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_files_of_any_data(kind, way, tmp_path):
    trained, data = trained_on(kind, **WAYS[way])
    model, pixels = classifier_of(trained), KINDS[kind][0]
    onnx, weights = tmp_path / "n.onnx", tmp_path / "n.safetensors"
    mlpcore.export(model, onnx)
    mlpcore.export(model, weights)
    again = mlpcore.load(weights, backend="reference")
    expected = model.outputs(model.to_images(pixels))
    np.testing.assert_array_equal(model.to_images(pixels[:9]), data.test_images)
    np.testing.assert_array_equal(again.outputs(again.to_images(pixels)), expected)
    assert again.classes.tolist() == list(data.classes)
    for some in (slice(None), slice(1), slice(0)):
        found = run_onnx(onnx, pixels[some])
        np.testing.assert_allclose(found, expected[some], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "other", "fits"),
    [
        ("bytes", "float32 0 to 1", True),  # both from black to white
        ("floats -1 to 1", "bool", True),
        ("bytes", "floats 0 to 16", False),
        ("floats 0 to 16", "uint16", False),
        ("negative", "floats 0 to 16", False),
    ],
)
def test_members_of_other_units(kind, other, fits):
    first, second = (trained_on(each)[0] for each in (kind, other))
    if fits:
        images = classifier_of(first).to_images(KINDS[kind][0])
        outputs = [classifier_of(each).outputs(images) for each in (first, second)]
        found = classifier_of(first, second).outputs(images)
        np.testing.assert_allclose(found, np.mean(outputs, axis=0))
    else:
        assert "is a network for pixels from" in refusal(classifier_of, first, second)
