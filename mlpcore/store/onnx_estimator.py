"""Exports of estimators to ONNX.

The file of an estimator takes features in the order of the training, and has the names that files
of scikit-learn's estimators usually have:

| name | content |
|---|---|
| ``X`` | input, float32 (n, features); n may be 0 |
| ``label`` | output (n,): what ``predict`` gives, int64, float64, bool or strings |
| ``probabilities`` | output, float32 (n, classes): what ``predict_proba`` gives |

The metadata are those that `mlpcore.store.export` describes, with the ``features`` of
``feature_names_in_``, if X had names, and without ``data`` and ``pixels``. Those of a
classifier for streams also have its ``standardisation``, which the file applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.standardisation import Standardisation
from mlpcore.store.documents import to_metadata
from mlpcore.store.onnx_graph import Graph
from mlpcore.store.onnx_layers import (
    add_layers,
    add_probabilities,
    describe_layers,
    metadata_of_layers,
)
from mlpcore.training.config import USUAL_TARGET
from mlpcore.typing import AnyArray

#: What an estimator's labels are in an ONNX file, by the kind of their type in NumPy.
LABEL_TYPES: dict[str, type] = {
    "i": np.int64,
    "u": np.int64,
    "f": np.float64,
    "b": np.bool_,
    "U": np.object_,
}


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
