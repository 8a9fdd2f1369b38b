"""ONNX graphs: operators, constants, the layers of networks, probabilities from their outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import A, B, complete
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.store.weights import layer_metadata, weights_sha256
from mlpcore.typing import AnyArray, ArrayLike
from mlpcore.version import __version__

#: The operators that we use have not changed since this version.
OPSET, IR_VERSION = 13, 7

#: Limit of a protocol buffer, which an ONNX file is, and the part of it that is not for weights.
MAX_BYTES, MAX_OTHER_BYTES = 2**31 - 1, 2**26


def import_onnx() -> Any:
    """The package `onnx`; an InputError if it cannot be imported."""
    try:
        import onnx
    except ImportError as error:
        raise InputError(
            f"the package onnx cannot be imported: {error}; expected mlpcore's extra 'export' "
            "(pip install 'mlpcore[export]')"
        ) from None
    return onnx


class Graph:
    """The operators and constants of an ONNX graph.

    Parameters
    ----------
    n_parameters : int
        How many weights and biases it is to hold.

    Attributes
    ----------
    prefix : str
        What the names of constants begin with, so that those of two networks differ.

    Raises
    ------
    InputError
        When the package `onnx` is missing, or so many do not fit into ONNX's 2 GiB.
    """

    def __init__(self, n_parameters: int):
        self.onnx, self.prefix = import_onnx(), ""
        n_bytes, most = 4 * n_parameters, MAX_BYTES - MAX_OTHER_BYTES
        if n_bytes > most:
            raise InputError(f"{n_bytes:,} bytes of weights: expected at most {most:,} for ONNX")
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, value: ArrayLike, dtype: Any = np.float32) -> str:
        """Add a constant, once for each name; return its name."""
        name = self.prefix + name
        if name not in self._constants:
            array: AnyArray = np.asarray(value, dtype, order="C")
            self._constants[name] = self.onnx.numpy_helper.from_array(array, name)
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Append an operator; return the name of its first result."""
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        results = [name, f"{name}.indices"] if operator == "TopK" else [name]
        node = self.onnx.helper.make_node(operator, inputs, results, name, **attributes)
        self._nodes.append(node)
        return name

    def content(
        self,
        inputs: Mapping[str, tuple[Any, list[int]]],
        outputs: Mapping[str, tuple[Any, list[int]]],
        text: str,
        metadata: dict[str, str],
    ) -> bytes:
        """The file of the model that computes the outputs from the inputs, as the text says.

        Each has the type of its numbers in NumPy, and the shape of one sample.
        """
        helper = self.onnx.helper
        ends = [
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", *shape]
                )
                for name, (dtype, shape) in each.items()
            ]
            for each in (inputs, outputs)
        ]
        constants = list(self._constants.values())
        graph = helper.make_graph(self._nodes, "mlpcore", *ends, constants, doc_string=text)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mlpcore",
            producer_version=__version__,
            doc_string=text,
        )
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString(deterministic=True)
        return content


#: What a layer computes from a, the weights times its input plus the biases.
FORMULAS = complete(
    __name__,
    {
        "tanh": f"{A} tanh({B} a)",
        "relu": "max(0, a)",
        "squared": f"{A} tanh({B} a)",
        "cross-entropy": "softmax(a)",
    },
)


def _scaled_tanh(graph: Graph, sums: str, name: str = "") -> str:
    """Append A tanh(B a)."""
    tanh = graph.add("Tanh", graph.add("Mul", sums, graph.constant("B", B)))
    return graph.add("Mul", tanh, graph.constant("A", A), name=name)


#: The nodes of hidden neurons.
HIDDEN: dict[str, Callable[[Graph, str], str]] = complete(
    __name__, {"tanh": _scaled_tanh, "relu": lambda graph, sums: graph.add("Relu", sums)}
)


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
        elif is_last:
            states = _scaled_tanh(graph, sums, end)
        else:
            states = HIDDEN[network.activation](graph, sums)
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
