"""Export trained networks to other programs: as ONNX, or as safetensors.

An ONNX file of a network that a run has trained takes the pixels of images:

| name | content |
|---|---|
| ``pixels`` | input (n, height, width): images as in the data of the training; n may be 0 |
| ``outputs`` | output, float32 (n, classes): +-1.7159 or, from a softmax, probabilities |

The class is that of the greatest output.

The graph scales the pixels as `mlpcore.data.scaling` does, and applies the layers. Its operators
are those of opset 13 (2020), so that old runtimes can read it. Pixels that were bytes in the
training are bytes here. An input of floats would accept any range: pixels that were already scaled
to [0, 1] would silently give wrong classes. Other numbers are float32, or float64 where float32 is
too coarse for their range, and have the values of the training.

The file of a committee holds all members and the mean of their outputs, as
`mlpcore.TrainedClassifier.outputs` gives it: of their probabilities if their losses differ.

The metadata are those of a file of weights (`mlpcore.store.weights`), without ``format`` and with
``weights_sha256`` (`mlpcore.store.weights.weights_sha256`) in place of ``sha256``. ``classes`` are
the names of the classes, in the order of the outputs. Those of a committee are ``classes``, and
``members``, a list in JSON of those of each.

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

from collections.abc import Mapping

import numpy as np

from mlpcore.data import embedded
from mlpcore.data.scaling import rescaling, resize
from mlpcore.files import atomic_write
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.documents import to_json
from mlpcore.store.inputs import NetworkInput, output_metadata
from mlpcore.store.onnx_graph import Graph
from mlpcore.store.onnx_layers import (
    add_layers,
    add_probabilities,
    describe_layers,
    metadata_of_layers,
)
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import to_safetensors
from mlpcore.typing import Float32Array, StrPath

#: The metadata that say where the weights come from, if these are of a run.
ORIGIN = ("epoch", "seed", "learning_rate", "ones_and_sevens", "revision", "machine")


def pixel_type(network_input: NetworkInput) -> type[np.generic]:
    """The type of the pixels that an ONNX file takes: uint8, float32 or float64."""
    if network_input.value_range is None:
        return np.uint8
    low, high = network_input.value_range
    width = high - low
    # A rounding of float32 is then at most 2^-23 of the range.
    is_fine = max(-low, high) <= 2 * width and 1e-30 < width < 1e30
    return np.float32 if is_fine else np.float64


def describe_input(network_input: NetworkInput) -> str:
    """The pixels that an exported network takes, in words."""
    height, width = network_input.pixel_shape
    low, high = network_input.pixel_range
    sides = f"{height} x {width} pixels, row by row"
    return f"grey values {low:g} to {high:g} of {sides}"


def to_onnx(*trained: TrainedNetwork) -> bytes:
    """The content of an ONNX file, the same for the same networks.

    Several are a committee, which `mlpcore.TrainedClassifier` accepts: the first decides which
    pixels it takes, and each sees its own view of them.

    Raises
    ------
    InputError
        When the package `onnx` is missing, or the networks are larger than ONNX's 2 GiB.
    """
    graph = Graph(sum(each.network.n_parameters for each in trained))
    first, several = trained[0], len(trained) > 1
    ink = _add_ink(graph, first.input)
    losses = {each.network.loss for each in trained}
    outputs = []
    for number, each in enumerate(trained, 1):
        graph.prefix = f"{number}." if several else ""
        inputs = _add_input(graph, ink, each.input, first.input)
        states = add_layers(graph, inputs, each.network, "" if several else "outputs")
        if len(losses) > 1 and each.network.loss == "squared":
            states = add_probabilities(graph, states, len(each.classes))
        outputs.append(states)
    pixels = f"pixels (n, height, width): {describe_input(first.input)}"
    answer = "outputs (n, classes): the greatest is the class."
    text = f"{describe_layers(first.network)} {pixels}. {answer}"
    metadata = _metadata(first)
    if several:
        graph.add("Mean", *outputs, name="outputs")
        layers = ", ".join(format_layer_sizes(each.network.layer_sizes) for each in trained)
        text = (
            f"Committee of {len(trained)} multilayer perceptrons: {layers}. {pixels}. outputs "
            "(n, classes): the mean of the members' outputs; the greatest is the class."
        )
        members = to_json([_metadata(each) for each in trained])
        metadata = {"classes": metadata["classes"], "members": members}
    return graph.content(
        {"pixels": (pixel_type(first.input), [*first.input.pixel_shape])},
        {"outputs": (np.float32, [len(first.classes)])},
        text,
        metadata,
    )


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
    metadata = known_metadata(trained) | dict(metadata or {})
    atomic_write(path, to_safetensors(trained.network, metadata, dtype))


def _add_ink(graph: Graph, network_input: NetworkInput) -> str:
    """Append the conversion of pixels to images as `mlpcore.data` has them, plus 1.

    The subtraction of 1 comes last, so that pixels outside the box of embedded digits stay 0 and
    become background.
    """
    dtype = pixel_type(network_input)
    low, high = network_input.pixel_range
    ink = "pixels"
    if dtype == np.uint8:
        dtype = np.float32
        ink = graph.add("Cast", ink, to=graph.onnx.TensorProto.FLOAT)
    if low:
        ink = graph.add("Sub", ink, graph.constant("low", low, dtype))
    ink = graph.add("Div", ink, graph.constant("half_white", (high - low) / 2, dtype))
    if dtype == np.float64:
        ink = graph.add("Cast", ink, to=graph.onnx.TensorProto.FLOAT)
    sides = zip(network_input.pixel_shape, network_input.image_shape)
    box = embedded.BOX if network_input.is_embedded else slice(None)
    for axis, (n_in, n_out) in enumerate(sides, 1):
        ink = _interpolate(graph, ink, _interpolation(n_in, n_out, box), axis)
    return ink


def _add_input(graph: Graph, ink: str, network_input: NetworkInput, pixels: NetworkInput) -> str:
    """Append the inputs (n, n_in) of a network, from the ink of the pixels that another takes."""
    factor, summand = rescaling(pixels.value_range, network_input.value_range)
    if (factor, summand) != (1, 0):
        ink = graph.add("Mul", ink, graph.constant("factor", factor))
        ink = graph.add("Add", ink, graph.constant("summand", summand - factor + 1))
    if network_input.input_range == "signed":
        ink = graph.add("Sub", ink, graph.constant("one", 1))
    else:
        ink = graph.add("Div", ink, graph.constant("two", 2))
    return graph.add("Flatten", ink, axis=1)


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


def known_metadata(trained: TrainedNetwork) -> dict[str, str]:
    """What there is to say of a network, apart from its layers."""
    origin = {name: trained.metadata[name] for name in ORIGIN if name in trained.metadata}
    outputs = output_metadata(trained.target, trained.classes)
    return origin | trained.input.to_metadata() | outputs


def _metadata(trained: TrainedNetwork) -> dict[str, str]:
    """The metadata of an ONNX file."""
    return known_metadata(trained) | metadata_of_layers(trained.network)
