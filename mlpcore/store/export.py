"""ONNX files of trained networks and of estimators.

An ONNX file of a network that a run has trained takes the pixels of images:

| name | content |
|---|---|
| ``pixels`` | input (n, height, width): images as in the data of the training; n may be 0 |
| ``outputs`` | output, float32 (n, classes): +-1.7159 or, from a softmax, probabilities |

The class is that of the greatest output.

The graph scales the pixels as `mlpcore.data.pixels.PixelSpec` does, and applies the layers. Its
operators are those of opset 13 (2020), so that old runtimes can read it. Pixels that were bytes in
the training data are bytes here. An input of floats would accept any range: pixels that were
already scaled to [0, 1] would silently give wrong classes. Other numbers are float32, or float64
where float32 is too coarse for their range, and have the values of the training data.

The file of a committee holds all members and the mean of their outputs, as
`mlpcore.TrainedClassifier.outputs` gives it: of their probabilities if their losses differ.

The metadata are those of a file of weights (`mlpcore.store.weights`), without ``format`` and with
``weights_sha256`` (`mlpcore.store.weights.weights_sha256`) in place of ``sha256``. ``classes`` are
the names of the classes, in the order of the outputs. Those of a committee are ``classes``, and
``members``, a list in JSON of those of each.

The file of an estimator takes features in the order used in training, and has the names that files
of scikit-learn's estimators usually have:

| name | content |
|---|---|
| ``X`` | input, float32, or float64 of a classifier that scales it, (n, features); n may be 0 |
| ``label`` | output (n,): what ``predict`` gives, int64, float64, bool or strings |
| ``probabilities`` | output, float32 (n, classes): what ``predict_proba`` gives |

Where a sample may have several labels, ``label`` is int64 (n, classes), and 1 for those it has.
Of a regressor the outputs are ``variable``, float64 (n, outputs), as of those of scikit-learn; and
its metadata ``means`` and ``deviations``, by which the network's outputs become these.

Its metadata are those above without ``data`` and ``pixels``, and with ``features``, the names of
``feature_names_in_`` if X had some. Those of a classifier for streams also have its
``standardisation``, which the file applies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mlpcore.data.pixels import PixelSpec
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import BINARY
from mlpcore.network.standardisation import Standardisation
from mlpcore.store.documents import to_json, to_metadata
from mlpcore.store.onnx_graph import Graph, Values, add_layers, add_probabilities, describe_layers
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import layer_metadata, weights_sha256
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import AnyArray, Float64Array

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
    pixels it takes, and each sees its own view of them. An InputError when the package `onnx` is
    missing, or the networks are larger than ONNX's 2 GiB.
    """
    graph = Graph(sum(each.network.n_parameters for each in trained))
    first, n = trained[0], len(trained)
    ink, losses = _add_ink(graph, first.pixels), {each.network.loss for each in trained}
    outputs = []
    for each in trained:
        inputs = _add_input(graph, ink, each.pixels, first.pixels)
        states = add_layers(graph, inputs, each.network)
        if len(losses) > 1 and each.network.loss == "squared":
            states = add_probabilities(graph, states, len(each.classes))
        outputs.append(states)
    graph.add("Mean", *outputs, name="outputs")
    metadata = [_metadata(each.network, each.known_metadata()) for each in trained]
    texts = [f"Committee of {n}, which answers by the mean of its members."] if n > 1 else []
    texts += dict.fromkeys(describe_layers(each.network) for each in trained)
    texts += [
        f"pixels (n, height, width): {describe_input(first.pixels)}.",
        "outputs (n, classes): the greatest is the class.",
    ]
    return graph.content(
        {"pixels": (first.pixels.dtype, [*first.pixels.pixel_shape])},
        {"outputs": (np.float32, [len(first.classes)])},
        " ".join(texts),
        metadata[0]
        if n == 1
        else {"classes": metadata[0]["classes"], "members": to_json(metadata)},
    )


def _add_ink(graph: Graph, pixels: PixelSpec) -> str:
    """Append the conversion of pixels to images (n, 1, H, W) as `PixelSpec.to_images`, plus 1.

    The subtraction of 1 comes last, so that the margin stays 0 and becomes background.
    """
    to_float32 = {"to": graph.onnx.TensorProto.FLOAT}
    low, high = pixels.value_range
    ink, number = "pixels", np.float64 if pixels.dtype == np.float64 else np.float32
    if pixels.whole:
        ink = graph.add("Cast", ink, **to_float32)
    ink = graph.add("Div", graph.add("Sub", ink, number(low)), number((high - low) / 2))
    ink = graph.add("Unsqueeze", graph.add("Cast", ink, **to_float32), [1])
    # Scales are cut to whole sides. The half keeps 29 / 28 of 28 from becoming 28.
    sides = zip(pixels.pixel_shape, pixels.image_shape)
    scales = [(n_out - 2 * pixels.margin + 0.5) / n_in for n_in, n_out in sides]
    linear = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    ink = graph.add("Resize", ink, "", [1.0, 1.0, *scales], **linear)
    return graph.add("Pad", ink, [0, 0, pixels.margin, pixels.margin] * 2)


def _add_input(graph: Graph, ink: str, seen: PixelSpec, given: PixelSpec) -> str:
    """Append the inputs (n, n_in) of a network, from the ink of the pixels that another takes."""
    factor, summand = seen.rescaling(given)
    if (factor, summand) != (1, 0):
        ink = graph.add("Add", graph.add("Mul", ink, factor), summand - factor + 1)
    to_range = ("Sub", 1.0) if seen.input_range == "signed" else ("Div", 2.0)
    return graph.add("Flatten", graph.add(to_range[0], ink, to_range[1]), axis=1)


def _metadata(network: Network, known: dict[str, str]) -> dict[str, str]:
    """The known metadata of a network, its layers and the checksum of its weights."""
    return known | layer_metadata(network) | {"weights_sha256": weights_sha256(network)}


@dataclass(frozen=True)
class EstimatorNetwork:
    """The network of an estimator, for an export.

    An InputError is raised when the classes are neither all numbers nor all texts.
    """

    network: Network
    classes: AnyArray = field(default_factory=lambda: np.empty(0))  #: what ``predict`` answers
    target: float = USUAL_TARGET  #: of the output for the class, if the loss is "squared"
    n_samples: int = 0  #: learnt so far, which limits the probabilities if the loss is "squared"
    feature_names: tuple[str, ...] = ()  #: if they have some
    standardisation: Standardisation | None = None  #: of features, before the first layer
    scale: tuple[Float64Array, Float64Array] | None = None
    """Means and deviations (n_outputs,) of a regression: a target is mean + deviation * output."""

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
        """The metadata of a file, apart from those of the layers."""
        known = {"features": self.feature_names, "standardisation": self.standardisation}
        known = {name: value for name, value in known.items() if value}
        if self.scale is not None:
            means, deviations = (each.tolist() for each in self.scale)
            return to_metadata(means=means, deviations=deviations, **known)
        return to_metadata(target=self.target, classes=self.classes.tolist(), **known)


def _add_features(graph: Graph, scale: Standardisation | None) -> tuple[str, type]:
    """Append what becomes of an estimator's X; return that, and the type of X.

    It is float64 where numbers may be far from 0 and differ little. NaN is a missing name.
    """
    if scale is None:
        return "X", np.float32
    inputs = graph.add("Sub", "X", np.array(scale.means))
    inputs = graph.add("Mul", inputs, np.array(scale.factors))
    inputs = graph.add("Cast", inputs, to=graph.onnx.TensorProto.FLOAT)
    inputs = graph.add("Clip", inputs, -scale.limit, scale.limit)
    return graph.add("Where", graph.add("IsNaN", inputs), 0.0, inputs), np.float64


def _add_answers(graph: Graph, outputs: str, estimator: EstimatorNetwork) -> Values:
    """Append the labels and the probabilities of a classifier; return their types and shapes."""
    classes, loss = estimator.classes, estimator.network.loss
    label, shape = LABEL_TYPES[classes.dtype.kind], list[int]()
    if loss == BINARY:
        shape = [len(classes)]
        present = graph.add("Greater", outputs, 0.5)
        graph.add("Cast", present, to=graph.onnx.TensorProto.INT64, name="label")
    else:
        best = graph.add("ArgMax", outputs, axis=1, keepdims=0)
        graph.add("Gather", classes.astype(label), best, axis=0, name="label")
    if loss == "squared":  # never 0 or 1: mlpcore.evaluation.probabilities.unsure
        outputs = add_probabilities(graph, outputs, len(classes), estimator.target)
        total = estimator.n_samples + len(classes)
        outputs = graph.add("Mul", outputs, estimator.n_samples / total)
        outputs = graph.add("Add", outputs, 1 / total)
    graph.add("Identity", outputs, name="probabilities")
    return {"label": (label, shape), "probabilities": (np.float32, [len(classes)])}


def estimator_to_onnx(estimator: EstimatorNetwork) -> bytes:
    """The content of an ONNX file of an estimator's network; errors are those of `to_onnx`."""
    network, graph = estimator.network, Graph(estimator.network.n_parameters)
    inputs, dtype = _add_features(graph, estimator.standardisation)
    outputs = add_layers(graph, inputs, network)
    if estimator.scale is None:
        found = _add_answers(graph, outputs, estimator)
    else:
        outputs = graph.add("Cast", outputs, to=graph.onnx.TensorProto.DOUBLE)
        outputs = graph.add("Mul", outputs, estimator.scale[1])
        graph.add("Add", outputs, estimator.scale[0], name="variable")
        found = {"variable": (np.float64, [network.layer_sizes[-1]])}
    return graph.content(
        {"X": (dtype, [network.layer_sizes[0]])},
        found,
        f"{describe_layers(network)} X (n, features). {', '.join(found)} (n, ...).",
        _metadata(network, estimator.metadata()),
    )
