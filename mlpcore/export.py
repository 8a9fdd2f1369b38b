"""Networks for other programs: ONNX models that take the pixels of a data set's files.

A model's only input is ``pixels`` (n, h, w), the images as the data set's files hold them, of
any number n; its only output is ``outputs`` (n, classes), those of the network. What lies in
between is `mlpcore.images` and the network, in the operators that every runtime has:

    MatMul, MatMul    to the network's image, by bilinear interpolation with aligned corners:
                      R P C^T with constant matrices
    Div, Sub          to [-1, 1]: pixel / 127.5 - 1
    Flatten           row by row
    Gemm, Tanh, Mul   for each layer: A tanh(B W x + B b)

The initialisers ``layers.0.weight`` and so on are those of `mlpcore.weights`, bit for bit.
Interpolation comes before scaling, the other way round than in training: that is the same but
for rounding, and leaves a black background at exactly -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import mlpcore
from mlpcore.architecture import count_parameters
from mlpcore.backends.inference import A, B
from mlpcore.errors import InputError
from mlpcore.files import atomic_write
from mlpcore.trained import TrainedNetwork
from mlpcore.typing import AnyArray
from mlpcore.weights import write_network

if TYPE_CHECKING:
    import onnx

#: Of 2020 and 2021: every runtime of today has them, and no later operator is needed.
OPSET, IR_VERSION = 13, 7

PIXEL_TYPES = ("uint8", "float32")

#: A protocol buffer has at most 2 GiB; the graph needs little besides the weights.
MAX_WEIGHT_BYTES = 2**31 - 2**24


def check_onnx() -> None:
    """Raises an InputError when the package that writes ONNX is missing."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise InputError(
            "the package onnx is not installed: expected it for --onnx "
            "(pip install 'mlpcore[export]')"
        ) from None


def onnx_model(trained: TrainedNetwork, pixel_type: str = "uint8") -> onnx.ModelProto:
    """The network and the conversion of its inputs as an ONNX model, as the module describes.

    Parameters
    ----------
    pixel_type
        Of the input: ``"uint8"`` or ``"float32"``, in both cases from 0 to 255, or to what
        the data set has for white.

    Raises
    ------
    InputError
        When onnx is not installed, the type is another, or the network is larger than a
        model may be.
    """
    check_onnx()
    import onnx
    from onnx import helper

    if pixel_type not in PIXEL_TYPES:
        raise InputError(f"type of pixels {pixel_type!r}: expected {' or '.join(PIXEL_TYPES)}")
    sizes = trained.network.layer_sizes
    n_bytes = 4 * count_parameters(sizes)
    if n_bytes > MAX_WEIGHT_BYTES:
        raise InputError(
            f"a network of {n_bytes:,} bytes: expected at most {MAX_WEIGHT_BYTES:,}, "
            "as ONNX limits a file to 2 GiB"
        )
    element = {"uint8": onnx.TensorProto.UINT8, "float32": onnx.TensorProto.FLOAT}[pixel_type]
    arrays = dict(_constants(trained))
    pixels = helper.make_tensor_value_info("pixels", element, ["n", *trained.input.pixel_shape])
    outputs = helper.make_tensor_value_info("outputs", onnx.TensorProto.FLOAT, ["n", sizes[-1]])
    graph = helper.make_graph(
        list(_nodes(trained, pixel_type)),
        "mlpcore",
        [pixels],
        [outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="mlpcore",
        producer_version=mlpcore.__version__,
        doc_string=_description(trained, pixel_type),
    )
    helper.set_model_props(model, _properties(trained))
    onnx.checker.check_model(model, full_check=True)
    return model


def _constants(trained: TrainedNetwork) -> Iterator[tuple[str, AnyArray]]:
    """The initialisers, by name."""
    rows, columns = trained.input.interpolation()
    yield "input.rows", rows
    yield "input.columns", np.ascontiguousarray(columns.T)
    yield "input.grey", np.array(trained.input.white / 2, np.float32)
    yield "input.one", np.array(1, np.float32)
    yield "activation.a", np.array(A, np.float32)
    layers = zip(trained.network.weights, trained.network.biases)
    for i, (weights, biases) in enumerate(layers):
        yield f"layers.{i}.weight", np.ascontiguousarray(weights)
        yield f"layers.{i}.bias", np.ascontiguousarray(biases)


def _nodes(trained: TrainedNetwork, pixel_type: str) -> Iterator[onnx.NodeProto]:
    """The operators, in order."""
    from onnx import TensorProto
    from onnx.helper import make_node

    pixels = "pixels"
    if pixel_type != "float32":
        pixels = "input.pixels"
        yield make_node("Cast", ["pixels"], [pixels], to=TensorProto.FLOAT)
    yield make_node("MatMul", [pixels, "input.columns"], ["input.wide"])
    yield make_node("MatMul", ["input.rows", "input.wide"], ["input.image"])
    yield make_node("Div", ["input.image", "input.grey"], ["input.scaled"])
    yield make_node("Sub", ["input.scaled", "input.one"], ["input.normalised"])
    yield make_node("Flatten", ["input.normalised"], ["input.inputs"], axis=1)
    below, last = "input.inputs", trained.network.n_layers - 1
    for i in range(trained.network.n_layers):
        name = f"layers.{i}"
        above = "outputs" if i == last else f"{name}.states"
        layer = [below, f"{name}.weight", f"{name}.bias"]
        yield make_node("Gemm", layer, [f"{name}.scaled"], alpha=B, beta=B, transB=1)
        yield make_node("Tanh", [f"{name}.scaled"], [f"{name}.tanh"])
        yield make_node("Mul", [f"{name}.tanh", "activation.a"], [above])
        below = above


def _description(trained: TrainedNetwork, pixel_type: str) -> str:
    """What a model takes and gives, in a line."""
    given = trained.input
    height, width = given.pixel_shape
    of = f"{given.data}'s images as they are" if given.data else "images like MNIST's"
    return (
        f"pixels (n, {height}, {width}) {pixel_type}, 0 to {given.white}: {of} -> "
        f"outputs (n, {trained.network.layer_sizes[-1]}) float32, the greatest that of the class"
    )


def _properties(trained: TrainedNetwork) -> dict[str, str]:
    """The model's metadata: those of the weights that describe the network."""
    kept = ("epoch", "seed", "learning_rate")
    return (
        {name: trained.metadata[name] for name in kept if name in trained.metadata}
        | {
            "architecture": ",".join(map(str, trained.network.layer_sizes)),
            "version": mlpcore.__version__,
        }
        | trained.input.to_metadata()
    )


def describe_model(model: onnx.ModelProto) -> str:
    """What a model of `onnx_model` takes and gives, in a line."""
    return str(model.doc_string)


def write_onnx(path: Path, model: onnx.ModelProto) -> None:
    """Writes a model to a file, atomically.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    atomic_write(path, model.SerializeToString())


def write_safetensors(path: Path, trained: TrainedNetwork) -> None:
    """Writes a file of weights that says what its network's inputs are.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    write_network(path, trained.network, _properties(trained))
