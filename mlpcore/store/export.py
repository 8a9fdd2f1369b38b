"""Export trained networks to other programs: as ONNX, or as safetensors.

An ONNX file takes the pixels of images and gives the outputs of the network:

| name | content |
|---|---|
| ``pixels`` | input, uint8 (n, height, width): images as in the files of the data; n may be 0 |
| ``outputs`` | output, float32 (n, classes): +-1.7159 or, from a softmax, probabilities |

The class is that of the greatest output.

The graph scales the pixels as `mlpcore.data.scaling` does, brings the ink to the network's width
if it has one (`mlpcore.data.width`), and applies the layers. Its operators are those of opset 13
(2020), so that old runtimes can read it. Pixels are bytes, as in files and from cameras. An input
of floats would accept any range: pixels that were already scaled to [0, 1] would silently give
wrong classes.

Its metadata are those of a file of weights (`mlpcore.store.weights`), without ``format`` and with
``weights_sha256`` (`mlpcore.store.weights.weights_sha256`) in place of ``sha256``. The file of a
committee holds all members and the mean of their outputs. Its metadata are ``members``, a list in
JSON of those of each.

>>> from pathlib import Path
>>> from mlpcore import Network
>>> mnist = NetworkInput("MNIST", (29, 29), (28, 28))
>>> trained = TrainedNetwork(Path("net.safetensors"), Network((841, 10), seed=1), mnist, {})
>>> describe_input(trained.input)
'grey values 0 to 255 of 28 x 28 pixels, row by row'
>>> write_safetensors(trained, "net.safetensors")
>>> TrainedNetwork.read("net.safetensors").network
Network((841, 10))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlpcore.data import embedded
from mlpcore.data.scaling import resize
from mlpcore.errors import InputError
from mlpcore.files import atomic_write
from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.documents import to_json
from mlpcore.store.inputs import NetworkInput, output_metadata
from mlpcore.store.onnx_graph import Graph
from mlpcore.store.onnx_width import add_width
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import layer_metadata, weights_sha256, write_network
from mlpcore.typing import Float32Array, StrPath

#: Limit of a protocol buffer, which an ONNX file is, and the part of it that is not for weights.
MAX_BYTES, MAX_OTHER_BYTES = 2**31 - 1, 2**26

#: What a layer computes from a, the weights times its input plus the biases.
FORMULAS = {
    "tanh": f"{A} tanh({B} a)",
    "relu": "max(0, a)",
    "squared": f"{A} tanh({B} a)",
    "cross-entropy": "softmax(a)",
}

#: The metadata that say where the weights come from, if these are of a run.
ORIGIN = ("epoch", "seed", "learning_rate", "revision", "machine")


def describe_input(network_input: NetworkInput) -> str:
    """The pixels that an exported network takes, in words."""
    height, width = network_input.pixel_shape
    return f"grey values 0 to {network_input.white} of {height} x {width} pixels, row by row"


def import_onnx() -> Any:
    """The package `onnx`; an InputError if it cannot be imported."""
    try:
        import onnx
        import onnx.compose
    except ImportError as error:
        raise InputError(
            f"the package onnx cannot be imported: {error}; expected mlpcore's extra 'export' "
            "(pip install 'mlpcore[export]')"
        ) from None
    return onnx


def to_onnx(*trained: TrainedNetwork) -> bytes:
    """The content of an ONNX file, the same for the same networks.

    Several are a committee: ``outputs`` is the mean of theirs, and each sees its own view of the
    pixels.

    Raises
    ------
    InputError
        When the package `onnx` is missing, the networks are larger than ONNX's 2 GiB, or members of
        a committee take different pixels or have different losses.
    """
    onnx = import_onnx()
    n_bytes = 4 * sum(each.network.n_parameters for each in trained)
    most = MAX_BYTES - MAX_OTHER_BYTES
    if n_bytes > most:
        raise InputError(f"{n_bytes:,} bytes of weights: expected at most {most:,} for ONNX")
    models = [_model(onnx, each) for each in trained]
    model = models[0] if len(models) == 1 else _mean(onnx, models, trained)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def _mean(onnx: Any, models: Sequence[Any], trained: Sequence[TrainedNetwork]) -> Any:
    """The model of a committee: all members' operators, and the mean of their outputs."""
    for what, values in (
        ("loss", [each.network.loss for each in trained]),
        ("classes", [each.classes for each in trained]),
        ("pixels", [describe_input(each.input) for each in trained]),
    ):
        if len(set(values)) > 1:
            different = " and ".join(dict.fromkeys(map(str, values)))
            raise InputError(f"members of different {what}, {different}: expected the same")
    graph = Graph(onnx)
    for number, model in enumerate(models, 1):
        member = onnx.compose.add_prefix(model, f"{number}.").graph
        graph.add("Identity", "pixels", name=member.input[0].name)
        graph.extend(member)
    outputs = [f"{number}.outputs" for number in range(1, len(models) + 1)]
    graph.add("Mean", *outputs, name="outputs")
    first = trained[0]
    layers = ", ".join(format_layer_sizes(each.network.layer_sizes) for each in trained)
    return graph.model(
        first.input.pixel_shape,
        first.network.layer_sizes[-1],
        f"Committee of {len(models)} multilayer perceptrons: {layers}. pixels (n, height, width): "
        f"{describe_input(first.input)}. outputs (n, classes): the mean of the members' outputs; "
        "the greatest is the class.",
        {"members": to_json([_metadata(each) for each in trained])},
    )


def _model(onnx: Any, trained: TrainedNetwork) -> Any:
    """The model of a single network."""
    network = trained.network
    graph = Graph(onnx)
    states = _add_input(graph, trained.input)
    for i in range(network.n_layers):
        weights = graph.constant(f"layers.{i}.weight", network.weights[i])
        biases = graph.constant(f"layers.{i}.bias", network.biases[i])
        states = graph.add("Gemm", states, weights, biases, transB=1)
        states = _add_activation(graph, states, network, i)
    return graph.model(
        trained.input.pixel_shape,
        network.layer_sizes[-1],
        f"Multilayer perceptron {format_layer_sizes(network.layer_sizes)}. Hidden layers: "
        f"{FORMULAS[network.activation]}. Output layer: {FORMULAS[network.loss]}. "
        f"pixels (n, height, width): {describe_input(trained.input)}. "
        "outputs (n, classes): the greatest is the class.",
        _metadata(trained),
    )


def write_onnx(path: StrPath, *trained: TrainedNetwork) -> None:
    """Write the result of `to_onnx`, atomically; an InputError when that fails."""
    atomic_write(path, to_onnx(*trained))


def write_safetensors(
    trained: TrainedNetwork,
    path: StrPath,
    metadata: Mapping[str, str] | None = None,
    dtype: str = "float32",
) -> None:
    """Write the network without its place in a run, atomically.

    The metadata are those of `mlpcore.store.weights`, and those that the caller adds.

    Raises
    ------
    InputError
        As `mlpcore.store.weights.write_network`, which describes `dtype`.
    """
    write_network(path, trained.network, _known(trained) | dict(metadata or {}), dtype)


def _add_input(graph: Graph, network_input: NetworkInput) -> str:
    """Append the conversion of pixels to inputs, as `mlpcore.data` computes it.

    The interpolation comes before the subtraction of 1, so pixels outside the box of embedded
    digits stay 0 and become background.
    """
    signed = network_input.input_range == "signed"
    scale = network_input.white / 2 if signed else network_input.white
    images = graph.add("Cast", "pixels", to=graph.onnx.TensorProto.FLOAT)
    images = graph.add("Div", images, graph.constant("half_white" if signed else "white", scale))
    sides = zip(network_input.pixel_shape, network_input.image_shape)
    box = embedded.BOX if network_input.is_embedded else slice(None)
    for axis, (n_in, n_out) in enumerate(sides, 1):
        images = _interpolate(graph, images, _interpolation(n_in, n_out, box), axis)
    if network_input.width is not None:
        images = add_width(graph, images, network_input.image_shape, network_input.width)
    if signed:
        images = graph.add("Sub", images, graph.constant("one", 1))
    return graph.add("Flatten", images, axis=1)


def _interpolation(n_in: int, n_out: int, box: slice) -> Float32Array:
    """The matrix (n_out, n_in) that scales one side: its columns are the scaled unit vectors."""
    result = np.zeros((n_out, n_in), np.float32)
    result[box] = resize(np.eye(n_in)[None], len(result[box]), n_in)[0]
    return result


def _interpolate(graph: Graph, images: str, matrix: Float32Array, axis: int) -> str:
    """Append the product of an `_interpolation` and one axis of images.

    A row of the matrix has at most two weights other than 0, and they are neighbours. So this
    gathers two pixels and adds them, weighted. MatMul would be more work, and ONNX Runtime fails
    to compute it for 0 images.
    """
    n_out, n_in = matrix.shape
    if np.array_equal(matrix, np.eye(n_out, n_in)):
        return images
    low = np.minimum((matrix != 0).argmax(axis=1), n_in - 2)
    terms = []
    for end, index in (("low", low), ("high", low + 1)):
        weights = matrix[np.arange(n_out), index].reshape((-1, 1) if axis == 1 else -1)
        indices = graph.constant(f"axis.{axis}.{end}.index", index, np.int64)
        pixels = graph.add("Gather", images, indices, axis=axis)
        weights_name = graph.constant(f"axis.{axis}.{end}.weight", weights)
        terms.append(graph.add("Mul", pixels, weights_name))
    return graph.add("Add", *terms)


def _add_activation(graph: Graph, sums: str, network: Network, layer: int) -> str:
    """Append what a layer computes from its sums; the last layer's are the outputs."""
    is_last = layer == network.n_layers - 1
    name = "outputs" if is_last else ""
    if is_last and network.loss == "cross-entropy":
        return graph.add("Softmax", sums, name=name)
    if not is_last and network.activation == "relu":
        return graph.add("Relu", sums)
    scaled = graph.add("Mul", sums, graph.constant("B", B))
    return graph.add("Mul", graph.add("Tanh", scaled), graph.constant("A", A), name=name)


def _known(trained: TrainedNetwork) -> dict[str, str]:
    """What there is to say of a network, apart from its layers."""
    origin = {name: trained.metadata[name] for name in ORIGIN if name in trained.metadata}
    outputs = output_metadata(trained.target, trained.classes)
    return origin | trained.input.to_metadata() | outputs


def _metadata(trained: TrainedNetwork) -> dict[str, str]:
    """The metadata of an ONNX file."""
    sha256 = {"weights_sha256": weights_sha256(trained.network)}
    return _known(trained) | layer_metadata(trained.network) | sha256
