"""ONNX files of trained networks and of estimators.

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

The file of an estimator takes features in the order of the training, and has the names that files
of scikit-learn's estimators usually have:

| name | content |
|---|---|
| ``X`` | input, float32 (n, features); n may be 0 |
| ``label`` | output (n,): what ``predict`` gives, int64, float64, bool or strings |
| ``probabilities`` | output, float32 (n, classes): what ``predict_proba`` gives |

Its metadata are those above without ``data`` and ``pixels``, and with ``features``, the names of
``feature_names_in_`` if X had some. Those of a classifier for streams also have its
``standardisation``, which the file applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.data.pixels import PixelSpec, resize
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.network.standardisation import Standardisation
from mlpcore.store.documents import to_json, to_metadata
from mlpcore.store.onnx_graph import (
    Graph,
    add_layers,
    add_probabilities,
    describe_layers,
    metadata_of_layers,
)
from mlpcore.store.trained import TrainedNetwork
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import AnyArray, Float32Array

#: What an estimator's labels are in an ONNX file, by the kind of their type in NumPy.
LABEL_TYPES: dict[str, type] = {
    "i": np.int64,
    "u": np.int64,
    "f": np.float64,
    "b": np.bool_,
    "U": np.object_,
}


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


def _metadata(trained: TrainedNetwork) -> dict[str, str]:
    """The metadata of an ONNX file."""
    return trained.known_metadata() | metadata_of_layers(trained.network)


@dataclass(frozen=True)
class EstimatorNetwork:
    """What an estimator has trained, for an export.

    Attributes
    ----------
    network : Network
    classes : numpy.ndarray, shape (n_classes,)
        What ``predict`` answers.
    target : float
        Target of the output for the class, of a network of the loss "squared".
    n_samples : int
        How many samples it has learnt from, which limits its probabilities if the loss is squared.
    feature_names : sequence of str
        The names of the features, if they have some.
    standardisation : Standardisation, optional
        What becomes of features before the first layer.

    Raises
    ------
    InputError
        When the classes are neither all numbers nor all texts.
    """

    network: Network
    classes: AnyArray
    target: float = USUAL_TARGET
    n_samples: int = 0
    feature_names: tuple[str, ...] = ()
    standardisation: Standardisation | None = None

    def __post_init__(self) -> None:
        classes = self.classes
        if classes.dtype == object and len({type(each) for each in classes}) == 1:
            classes = np.array(classes.tolist())
            object.__setattr__(self, "classes", classes)
        kind = classes.dtype.kind
        if kind not in LABEL_TYPES or classes.ndim > 1 or (kind == "u" and classes.max() >= 2**63):
            raise InputError(
                f"classes of the type {self.classes.dtype}, such as {self.classes[-1]!r}: expected "
                "texts, or numbers that int64 or float64 holds"
            )

    def metadata(self) -> dict[str, str]:
        """What there is to say of the network, apart from its layers."""
        further = {"features": self.feature_names, "standardisation": self.standardisation}
        given = {name: value for name, value in further.items() if value}
        return to_metadata(target=self.target, classes=self.classes.tolist(), **given)


def estimator_to_onnx(estimator: EstimatorNetwork) -> bytes:
    """The content of an ONNX file of an estimator's network, the same for the same network.

    Raises
    ------
    InputError
        As `to_onnx`.
    """
    network, classes, inputs = estimator.network, estimator.classes, "X"
    label = LABEL_TYPES[classes.dtype.kind]
    graph = Graph(network.n_parameters)
    if (scale := estimator.standardisation) is not None:
        inputs = graph.add("Sub", inputs, graph.constant("means", scale.means))
        inputs = graph.add("Mul", inputs, graph.constant("factors", scale.factors))
        limits = graph.constant("least", -scale.limit), graph.constant("most", scale.limit)
        inputs = graph.add("Clip", inputs, *limits)
    outputs = add_layers(
        graph, inputs, network, "" if network.loss == "squared" else "probabilities"
    )
    best = graph.add("ArgMax", outputs, axis=1, keepdims=0)
    graph.add("Gather", graph.constant("classes_", classes, label), best, axis=0, name="label")
    if network.loss == "squared":  # never 0 or 1: mlpcore.evaluation.probabilities.unsure
        sure = add_probabilities(graph, outputs, len(classes), estimator.target)
        total = estimator.n_samples + len(classes)
        sure = graph.add("Mul", sure, graph.constant("share", estimator.n_samples / total))
        graph.add("Add", sure, graph.constant("doubt", 1 / total), name="probabilities")
    return graph.content(
        {"X": (np.float32, [network.layer_sizes[0]])},
        {"label": (label, []), "probabilities": (np.float32, [len(classes)])},
        f"{describe_layers(network)} X (n, features). label (n,), probabilities (n, classes).",
        estimator.metadata() | metadata_of_layers(network),
    )
