"""ONNX files compute what Python does, for networks and committees on data of any kind."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from mlpcore import Dataset, TrainedClassifier, backends
from mlpcore.data.scaling import INPUT_RANGES
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from mlpcore.store.export import to_onnx
from mlpcore.store.trained import TrainedNetwork
from oracle import random_network

#: As in tests/store/test_exported_files.py: roundings of float32, through ten layers at most.
TOLERANCE = 1e-5

DTYPES = [np.uint8, np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64]


@st.composite
def arrays(draw):
    """Images of a type, as much of its range as some data have; all kinds are as likely."""
    n, height, width = 40, *draw(st.tuples(st.integers(2, 12), st.integers(2, 12)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares = rng.random((n, height, width)).round(draw(st.sampled_from([1, 3, 16])))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.kind == "b":
        return shares > 0.5
    if dtype.kind == "f":
        size = 10.0 ** draw(st.integers(-30, 30))
        least, most = size * draw(st.sampled_from([-1, -0.3, 0, 0.9])), size
    else:
        limits = np.iinfo(dtype)
        most = draw(st.integers(100, min(limits.max, 2**53)))
        least = draw(st.integers(max(limits.min, -(2**53)), most - 100))
    return (least + shares * (float(most) - least)).astype(dtype)


@st.composite
def committees(draw):
    """Pixels, and one to three networks as if each were trained on a part of them."""
    pixels = draw(arrays())
    networks = []
    for number in range(draw(st.integers(1, 3))):
        part = slice(10 * number * draw(st.booleans()), None)
        data = Dataset.from_arrays(pixels[part], np.arange(40)[part] % 4)
        seen = structs.replace(data.pixels, input_range=draw(st.sampled_from(INPUT_RANGES)))
        hidden = draw(st.lists(st.integers(1, 40), max_size=9))
        kind = {
            "activation": draw(st.sampled_from(ACTIVATIONS)),
            "loss": draw(st.sampled_from(LOSSES)),
        }
        network = random_network((data.n_inputs, *hidden, 4), draw(st.integers(0, 99)), **kind)
        networks.append(TrainedNetwork(Path(f"{number}"), network, seen, {}))
    return pixels, networks


@settings(max_examples=settings.default.max_examples // 2)
@given(committees(), st.sampled_from([0, 1, 2, 40]))
def test_onnx_runtime_gives_what_python_gives(committee, n):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    pixels, networks = committee[0][:n], committee[1]
    classifier = TrainedClassifier(networks, backends.get("reference"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    providers = ["CPUExecutionProvider"]
    session = runtime.InferenceSession(to_onnx(*networks), options, providers=providers)
    given_pixels = pixels.astype(networks[0].pixels.dtype)
    (found,) = session.run(None, {"pixels": given_pixels})
    expected = classifier.outputs(classifier.to_images(pixels))
    assert found.shape == (n, 4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
