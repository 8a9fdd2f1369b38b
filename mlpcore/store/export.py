"""Trained networks for other programs: in ONNX, and as safetensors alone.

An ONNX file holds all between a picture's bytes and the outputs:

| name | what |
|---|---|
| ``pixels`` | input, uint8 (n, height, width): images as in the files of the data, n from 0 |
| ``outputs`` | output, float32 (n, classes) in +-1.7159; the greatest is the class |

Pixels are bytes rather than floats, because bytes are what files and cameras give, and because
floats would be accepted in any range: those already scaled to [0, 1] would give wrong classes
without a word. The graph scales them as `mlpcore.data.scaling` does and applies the layers, by
operators of opset 13 (2020), so that old runtimes read it as well.

Its metadata, all text, are

| name | what |
|---|---|
| ``version`` | of this library |
| ``architecture`` | the layer sizes: ``841,1000,500,10`` |
| ``classes`` | how many; output k is that of label k |
| ``input`` | what the pixels are, in a sentence |
| ``white`` | the greatest value of a pixel; 0 is the background of digits |
| ``dataset`` | on which the network was trained, if known |
| ``weights_sha256`` | as `mlpcore.store.weights.weights_sha256` |

and ``epoch``, ``seed``, ``learning_rate``, ``revision`` and ``machine`` as far as the file of
weights has them (`mlpcore.store.run_folder`).

>>> from mlpcore import Network
>>> trained = TrainedNetwork(
...     Path("net.safetensors"), Network((841, 10), seed=1), NetworkInput.from_metadata({}, 841), {}
... )
>>> describe_input(trained.input)
'grey values 0 to 255 of 28 x 28 pixels, row by row'
>>> write_safetensors(trained, Path("net.safetensors"))
>>> TrainedNetwork.read(Path("net.safetensors")).network
Network((841, 10))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mlpcore.errors import InputError
from mlpcore.files import atomic_write
from mlpcore.network.activation import A, B
from mlpcore.network.architecture import count_parameters, format_layer_sizes
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import weights_sha256, write_network
from mlpcore.typing import AnyArray, ArrayLike, Float32Array
from mlpcore.version import __version__

#: Flatten, Gemm, Tanh and the like have not changed since; with its own version of the format.
OPSET, IR_VERSION = 13, 7

#: A protocol buffer, which an ONNX file is, takes 2 GiB; this is left for all but the weights.
MAX_BYTES, MAX_OTHER_BYTES = 2**31 - 1, 2**26

#: What a file of weights says of where they come from, other than their data.
ORIGIN = ("epoch", "seed", "learning_rate", "revision", "machine")


def describe_input(network_input: NetworkInput) -> str:
    """The images that an exported network takes, in words."""
    height, width = network_input.pixel_shape
    return f"grey values 0 to {network_input.white} of {height} x {width} pixels, row by row"


def require_onnx() -> None:
    """Raises InputError when the package `onnx` is not there."""
    _import_onnx()


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        if error.name != "onnx":
            reason = " ".join(str(error).split())
            raise InputError(f"the package onnx cannot be imported: {reason}") from error
        raise InputError(
            "ONNX needs the package onnx, which is not installed: expected mlpcore's extra "
            "'export' (pip install -e '.[export]')"
        ) from None
    return onnx


def to_onnx(trained: TrainedNetwork) -> bytes:
    """The content of an ONNX file, the same for the same network.

    Raises
    ------
    InputError
        When the package `onnx` is missing, or the network is larger than ONNX's 2 GiB.
    """
    onnx = _import_onnx()
    network = trained.network
    n_bytes = 4 * count_parameters(network.layer_sizes)
    if n_bytes + MAX_OTHER_BYTES > MAX_BYTES:
        raise InputError(
            f"a network of {format_layer_sizes(network.layer_sizes)} has {n_bytes:,} bytes of "
            f"weights: expected at most {MAX_BYTES - MAX_OTHER_BYTES:,} for an ONNX file"
        )
    graph = _Graph(onnx)
    states = _add_input(graph, trained.input)
    for i, (weights, biases) in enumerate(zip(network.weights, network.biases)):
        weights_name = graph.constant(f"layers.{i}.weight", weights)
        biases_name = graph.constant(f"layers.{i}.bias", biases)
        states = graph.add("Gemm", states, weights_name, biases_name, transB=1)
        states = graph.add("Mul", states, graph.constant("B", B))
        states = graph.add("Tanh", states)
        name = "outputs" if i == network.n_layers - 1 else ""
        states = graph.add("Mul", states, graph.constant("A", A), name=name)
    model = graph.model(trained.input.pixel_shape, network.layer_sizes[-1])
    model.doc_string = model.graph.doc_string = _describe(trained)
    onnx.helper.set_model_props(model, _metadata(trained))
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def write_onnx(trained: TrainedNetwork, path: Path) -> None:
    """Writes `to_onnx`, atomically; raises InputError when that cannot be written, too."""
    atomic_write(path, to_onnx(trained))


def write_safetensors(trained: TrainedNetwork, path: Path) -> None:
    """Writes the network without its place in a training, atomically.

    The metadata are those that `mlpcore.store.weights` describes; what was not recorded of the
    inputs, but assumed, is not written as a fact.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    known = {} if trained.input.assumed else trained.input.to_metadata()
    write_network(path, trained.network, _origin(trained) | known)


class _Graph:
    """Operators and constants from ``pixels`` to ``outputs``."""

    def __init__(self, onnx: Any):
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, value: ArrayLike, dtype: type = np.float32) -> str:
        """Stores a tensor or number and returns its name; the same name is the same value."""
        if name not in self._constants:
            array: AnyArray = np.asarray(value, dtype, order="C")
            self._constants[name] = self._onnx.numpy_helper.from_array(array, name)
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: int) -> str:
        """Appends an operator and returns the name of its result."""
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, inputs, [name], name, **attributes)
        self._nodes.append(node)
        return name

    def cast(self, name: str) -> str:
        """Appends the conversion to float32."""
        return self.add("Cast", name, to=self._onnx.TensorProto.FLOAT)

    def model(self, pixel_shape: tuple[int, int], n_classes: int) -> Any:
        """The whole."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        pixels = helper.make_tensor_value_info("pixels", types.UINT8, ["n", *pixel_shape])
        outputs = helper.make_tensor_value_info("outputs", types.FLOAT, ["n", n_classes])
        graph = helper.make_graph(
            self._nodes, "mlpcore", [pixels], [outputs], list(self._constants.values())
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mlpcore",
            producer_version=__version__,
        )


def _add_input(graph: _Graph, network_input: NetworkInput) -> str:
    """From pixels to the inputs of the first layer, as `images` and `dataset` compute them.

    Interpolation comes before the 1 is subtracted: what it leaves at 0 becomes background.
    """
    images = graph.add(
        "Div", graph.cast("pixels"), graph.constant("half_white", network_input.white / 2)
    )
    rows, columns = network_input.interpolation()
    images = _add_interpolation(graph, images, "rows", rows, axis=1)
    images = _add_interpolation(graph, images, "columns", columns, axis=2)
    images = graph.add("Sub", images, graph.constant("one", 1))
    return graph.add("Flatten", images, axis=1)


def _add_interpolation(
    graph: _Graph, images: str, name: str, matrix: Float32Array, axis: int
) -> str:
    """The product of a `NetworkInput.interpolation` matrix and one axis of images.

    Its rows have one or two neighbouring weights, or none. So this gathers and weighs two pixels
    each: less work than MatMul, with which ONNX Runtime fails for 0 images besides.
    """
    n_out, n_in = matrix.shape
    if np.array_equal(matrix, np.eye(n_out, n_in)):
        return images
    low = np.minimum((matrix != 0).argmax(axis=1), n_in - 2)
    terms = []
    for end, index in (("low", low), ("high", low + 1)):
        weights = matrix[np.arange(n_out), index].reshape((-1, 1) if axis == 1 else -1)
        indices = graph.constant(f"{name}.{end}.index", index, np.int64)
        pixels = graph.add("Gather", images, indices, axis=axis)
        weights_name = graph.constant(f"{name}.{end}.weight", weights)
        terms.append(graph.add("Mul", pixels, weights_name))
    return graph.add("Add", *terms)


def _origin(trained: TrainedNetwork) -> dict[str, str]:
    """What the file of weights says of its computation."""
    return {name: trained.metadata[name] for name in ORIGIN if name in trained.metadata}


def _metadata(trained: TrainedNetwork) -> dict[str, str]:
    """Of an ONNX file."""
    sizes = trained.network.layer_sizes
    data = {"dataset": trained.input.data} if trained.input.data else {}
    return (
        _origin(trained)
        | data
        | {
            "version": __version__,
            "architecture": ",".join(map(str, sizes)),
            "classes": str(sizes[-1]),
            "input": describe_input(trained.input)
            + (" (assumed)" if trained.input.assumed else ""),
            "white": str(trained.input.white),
            "weights_sha256": weights_sha256(trained.network),
        }
    )


def _describe(trained: TrainedNetwork) -> str:
    """The model's doc_string."""
    return (
        f"Multilayer perceptron {format_layer_sizes(trained.network.layer_sizes)} with "
        f"{A} tanh({B} a) in every layer. pixels (n, height, width): "
        f"{_metadata(trained)['input']}. outputs (n, classes): the greatest is the class."
    )
