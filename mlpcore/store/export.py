"""Export trained networks to other programs: as ONNX, or as safetensors.

An ONNX file of a network that a run has trained takes the pixels of images:

| name | content |
|---|---|
| ``pixels`` | input (n, height, width): images as in the data of the training; n may be 0 |
| ``outputs`` | output, float32 (n, classes): +-1.7159 or, from a softmax, probabilities |

The class is that of the greatest output.

The graph scales the pixels as `mlpcore.data.pixels.PixelSpec` does, and applies the layers. Its
operators are those of opset 13 (2020), so that old runtimes can read it. Pixels that were bytes in
the training are bytes here. An input of floats would accept any range: pixels that were already
scaled to [0, 1] would silently give wrong classes. Other numbers are float32, or float64 where
float32 is too coarse for their range, and have the values of the training.

The file of a committee holds all members and the mean of their outputs, as
`mlpcore.TrainedClassifier.outputs` gives it: of their probabilities if their losses differ.

The metadata are those of a file of weights (`mlpcore.store.weights`), without ``format`` and with
``weights_sha256`` (`mlpcore.store.weights.weights_sha256`) in place of ``sha256``. ``classes`` are
the names of the classes, in the order of the outputs. Those of a committee are ``classes``, and
``members``, a list in JSON of those of each.

>>> from pathlib import Path
>>> from mlpcore import Network
>>> from mlpcore.data.pixels import MNIST_PIXELS
>>> network, path = Network((841, 10), seed=1), Path("net.safetensors")
>>> trained = TrainedNetwork(path, network, MNIST_PIXELS, {"data": "MNIST"})
>>> describe_input(trained.pixels)
'grey values 0 to 255 of 28 x 28 pixels, row by row'
>>> write_safetensors(trained, "net.safetensors")
>>> TrainedNetwork.read("net.safetensors").network
Network((841, 10))
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlpcore.data.pixels import PixelSpec
from mlpcore.data.scaling import resize
from mlpcore.files import atomic_write
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.documents import to_json, to_metadata
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

#: The metadata that say where the weights come from.
ORIGIN = ("data", "epoch", "seed", "learning_rate", "ones_and_sevens", "revision", "machine")


def describe_input(pixels: PixelSpec) -> str:
    """The pixels that an exported network takes, in words."""
    height, width = pixels.pixel_shape
    low, high = pixels.value_range
    return f"grey values {low:g} to {high:g} of {height} x {width} pixels, row by row"


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
    ink = _add_ink(graph, first.pixels)
    losses = {each.network.loss for each in trained}
    outputs = []
    for number, each in enumerate(trained, 1):
        graph.prefix = f"{number}." if several else ""
        inputs = _add_input(graph, ink, each.pixels, first.pixels)
        states = add_layers(graph, inputs, each.network, "" if several else "outputs")
        if len(losses) > 1 and each.network.loss == "squared":
            states = add_probabilities(graph, states, len(each.classes))
        outputs.append(states)
    pixels = f"pixels (n, height, width): {describe_input(first.pixels)}"
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
        {"pixels": (first.pixels.dtype, [*first.pixels.pixel_shape])},
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


def _add_ink(graph: Graph, pixels: PixelSpec) -> str:
    """Append the conversion of pixels to images as `PixelSpec.to_images`, plus 1.

    The subtraction of 1 comes last, so that the margin stays 0 and becomes background.
    """
    low, high = pixels.value_range
    ink, dtype = "pixels", pixels.dtype
    if dtype == np.uint8:
        ink, dtype = graph.add("Cast", ink, to=graph.onnx.TensorProto.FLOAT), np.float32
    if low:
        ink = graph.add("Sub", ink, graph.constant("low", low, dtype))
    ink = graph.add("Div", ink, graph.constant("half_white", (high - low) / 2, dtype))
    if dtype == np.float64:
        ink = graph.add("Cast", ink, to=graph.onnx.TensorProto.FLOAT)
    for axis, sides in enumerate(zip(pixels.pixel_shape, pixels.image_shape), 1):
        ink = _interpolate(graph, ink, _interpolation(*sides, pixels.margin), axis)
    return ink


def _add_input(graph: Graph, ink: str, seen: PixelSpec, given: PixelSpec) -> str:
    """Append the inputs (n, n_in) of a network, from the ink of the pixels that another takes."""
    factor, summand = seen.rescaling(given)
    if (factor, summand) != (1, 0):
        ink = graph.add("Mul", ink, graph.constant("factor", factor))
        ink = graph.add("Add", ink, graph.constant("summand", summand - factor + 1))
    if seen.input_range == "signed":
        ink = graph.add("Sub", ink, graph.constant("one", 1))
    else:
        ink = graph.add("Div", ink, graph.constant("two", 2))
    return graph.add("Flatten", ink, axis=1)


def _interpolation(n_in: int, n_out: int, margin: int) -> Float32Array:
    """The matrix (n_out, n_in) that scales one side: its columns are the scaled unit vectors."""
    result = np.zeros((n_out, n_in), np.float32)
    box = result[margin : n_out - margin]
    box[...] = resize(np.eye(n_in)[None], len(box), n_in)[0]
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
    known = to_metadata(pixels=trained.pixels, target=trained.target, classes=trained.classes)
    return origin | known


def _metadata(trained: TrainedNetwork) -> dict[str, str]:
    """The metadata of an ONNX file."""
    return known_metadata(trained) | metadata_of_layers(trained.network)
