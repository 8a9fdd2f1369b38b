"""The layers of a network in ONNX operators, and probabilities from its outputs."""

from __future__ import annotations

import numpy as np

from mlpcore.network import Network
from mlpcore.network.activation import A, B
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.onnx_graph import Graph
from mlpcore.store.weights import layer_metadata, weights_sha256

#: What a layer computes from a, the weights times its input plus the biases.
FORMULAS = {
    "tanh": f"{A} tanh({B} a)",
    "relu": "max(0, a)",
    "squared": f"{A} tanh({B} a)",
    "cross-entropy": "softmax(a)",
}


def describe_layers(network: Network) -> str:
    """The layers and their formulas, in two sentences."""
    return (
        f"Multilayer perceptron {format_layer_sizes(network.layer_sizes)}. Hidden layers: "
        f"{FORMULAS[network.activation]}. Output layer: {FORMULAS[network.loss]}."
    )


def metadata_of_layers(network: Network) -> dict[str, str]:
    """The metadata of the layers and of their weights."""
    return layer_metadata(network) | {"weights_sha256": weights_sha256(network)}


def add_layers(graph: Graph, states: str, network: Network, name: str = "") -> str:
    """Append the layers for inputs (n, n_in); return their outputs (n, n_classes), of this name."""
    for i in range(network.n_layers):
        weights = graph.constant(f"layers.{i}.weight", network.weights[i])
        biases = graph.constant(f"layers.{i}.bias", network.biases[i])
        sums = graph.add("Gemm", states, weights, biases, transB=1)
        is_last = i == network.n_layers - 1
        end = name if is_last else ""
        if is_last and network.loss == "cross-entropy":
            states = graph.add("Softmax", sums, name=end)
        elif not is_last and network.activation == "relu":
            states = graph.add("Relu", sums)
        else:
            tanh = graph.add("Tanh", graph.add("Mul", sums, graph.constant("B", B)))
            states = graph.add("Mul", tanh, graph.constant("A", A), name=end)
    return states


def add_probabilities(graph: Graph, outputs: str, n_classes: int, target: float = 1.0) -> str:
    """Append the probabilities (n, n_classes) of outputs that the squared loss trained.

    As `mlpcore.evaluation.probabilities.of_outputs`.
    """
    constant = graph.constant
    half = constant("half", 0.5)
    points = graph.add("Mul", outputs, constant("half_target", 0.5 / target))
    points = graph.add("Add", points, half)
    axis, number = constant("axis.1", [1], np.int64), constant("classes", [n_classes], np.int64)
    descending = graph.add("TopK", points, number, axis=1)
    sums = graph.add("CumSum", descending, constant("axis", 1, np.int64))
    counts = constant("counts", np.arange(1, n_classes + 1))
    excess = graph.add("Sub", sums, constant("one", 1))
    is_positive = graph.add("Greater", graph.add("Mul", descending, counts), excess)
    positive = graph.add("Cast", is_positive, to=graph.onnx.TensorProto.FLOAT)
    n_positive = graph.add("ReduceSum", positive, axis)
    total = graph.add("ReduceSum", graph.add("Mul", descending, positive), axis)
    surplus = graph.add("Div", graph.add("Sub", total, constant("one", 1)), n_positive)
    return graph.add("Relu", graph.add("Sub", points, surplus))
