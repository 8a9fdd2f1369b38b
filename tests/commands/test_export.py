"""`mlpcore export`: what each format holds, and what is said."""

from pathlib import Path

import numpy as np
import pytest

from mlpcore.data.dataset import EMBEDDED
from mlpcore.data.pixels import DIGITS_PIXELS
from mlpcore.store import export
from mlpcore.store.documents import to_metadata
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import read_network, write_network
from oracle import random_network
from small_runs import same_weights


def write(path, sizes=(841, 50, 10), seed=1):
    metadata = to_metadata(data=EMBEDDED, pixels=DIGITS_PIXELS)
    write_network(path, random_network(sizes, seed), metadata)
    return path


def test_every_format(call):
    """The second time files are replaced; float16 halves the weights."""
    pytest.importorskip("onnx")
    weights, sizes = write("net.safetensors"), []
    for bits in 32, 16:
        files = "--html", "a.html", "--safetensors", "a.safetensors", "--onnx", "a.onnx"
        call("export", weights, *files, "--precision", f"float{bits}")
        sizes.append([Path(name).stat().st_size for name in files[1:4:2]])
        if bits == 32:
            assert same_weights(read_network("a.safetensors")[0], read_network(weights)[0])
    assert Path("a.onnx").read_bytes() == export.to_onnx(TrainedNetwork.read(weights))
    n_bytes = 2 * (841 * 50 + 50 + 50 * 10 + 10)
    assert np.subtract(*sizes) == pytest.approx([4 / 3 * n_bytes, n_bytes], rel=0.005)


def test_a_committee_in_one_file(call):
    pytest.importorskip("onnx")
    networks = [write(f"{seed}.safetensors", (841, 9 + seed % 2, 10), seed) for seed in range(3)]
    said = call("export", *networks, "--html", "a.html", "--onnx", "a.onnx")
    assert "page of" in said and "committee of 3: 841-9-10, 841-10-10, for grey values" in said
    assert "A committee of 3 networks on scikit-learn digits" in Path("a.html").read_text()
