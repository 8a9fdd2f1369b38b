"""ONNX graphs: operators, the layers of networks, probabilities from their outputs."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.network.activation import BINARY, HUBER, A, B, complete
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.typing import ArrayLike
from mlpcore.version import __version__

#: The operators that we use have not changed since this version.
OPSET, IR_VERSION = 13, 7

#: An ONNX file is a protocol buffer, which has 2 GiB at most. The rest is for what is no weight.
MAX_WEIGHT_BYTES = 2**31 - 2**26

Values: TypeAlias = Mapping[str, tuple[Any, list[int]]]
"""The names of inputs or outputs, each with its type in NumPy and the shape of a sample."""


class Graph:
    """The operators and constants of an ONNX graph, which is to hold so many weights and biases.

    An InputError when the package `onnx` is missing, or they do not fit into ONNX's 2 GiB.
    """

    def __init__(self, n_parameters: int):
        try:
            import onnx
        except ImportError as error:
            raise InputError(
                f"the package onnx cannot be imported: {error}; install it with "
                "pip install 'mlpcore[export]'"
            ) from None
        n_bytes = 4 * n_parameters
        if n_bytes > MAX_WEIGHT_BYTES:
            raise InputError(
                f"{n_bytes:,} bytes of weights: expected at most {MAX_WEIGHT_BYTES:,} for ONNX"
            )
        self.onnx: Any = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self, operator: str, *inputs: str | ArrayLike, name: str = "", **attributes: Any
    ) -> str:
        """Append an operator; return the name of its first result.

        Inputs are names, or values of constants. Those in arrays keep their type, and Python's
        numbers become float32 or int64.
        """
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        names = []
        for number, value in enumerate(inputs):
            if not isinstance(value, str):
                array = np.asarray(value, order="C")
                if array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
                    array = array.astype(np.float32)
                constant = self.onnx.numpy_helper.from_array(array, f"{name}.{number}")
                self._constants.append(constant)
                value = constant.name
            names.append(value)
        results = [name, f"{name}.indices"] if operator == "TopK" else [name]
        node = self.onnx.helper.make_node(operator, names, results, name, **attributes)
        self._nodes.append(node)
        return name

    def content(
        self, inputs: Values, outputs: Values, text: str, metadata: dict[str, str]
    ) -> bytes:
        """The file of the model that computes the outputs from the inputs, as the text says."""
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
        graph = helper.make_graph(self._nodes, "mlpcore", *ends, self._constants, doc_string=text)
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


def _scaled_tanh(graph: Graph, sums: str) -> str:
    """Append A tanh(B a)."""
    return graph.add("Mul", graph.add("Tanh", graph.add("Mul", sums, B)), A)


#: What the neurons of each activation and loss compute from a, the weights times the input plus
#: the biases: as text, and what appends it.
FORMULAS: dict[str, tuple[str, Callable[[Graph, str], str]]] = complete(
    __name__,
    {
        "tanh": (f"{A} tanh({B} a)", _scaled_tanh),
        "relu": ("max(0, a)", lambda graph, sums: graph.add("Relu", sums)),
        "squared": (f"{A} tanh({B} a)", _scaled_tanh),
        HUBER: ("a", lambda graph, sums: sums),
        BINARY: ("1 / (1 + exp(-a))", lambda graph, sums: graph.add("Sigmoid", sums)),
        "cross-entropy": ("softmax(a)", lambda graph, sums: graph.add("Softmax", sums)),
    },
)


def describe_layers(network: Network) -> str:
    """The layers and their formulas, in two sentences."""
    return (
        f"Multilayer perceptron {format_layer_sizes(network.layer_sizes)}. Hidden layers: "
        f"{FORMULAS[network.activation][0]}. Output layer: {FORMULAS[network.loss][0]}."
    )


def add_layers(graph: Graph, states: str, network: Network) -> str:
    """Append the layers for inputs (n, n_in); return their outputs (n, n_classes)."""
    kinds = [network.activation] * (network.n_layers - 1) + [network.loss]
    for weights, biases, kind in zip(network.weights, network.biases, kinds):
        states = FORMULAS[kind][1](graph, graph.add("Gemm", states, weights, biases, transB=1))
    return states


def add_probabilities(graph: Graph, outputs: str, n_classes: int, target: float = 1.0) -> str:
    """Append the probabilities (n, n_classes) of outputs that the squared loss trained.

    As `mlpcore.evaluation.probabilities.of_outputs`.
    """
    points = graph.add("Add", graph.add("Mul", outputs, 0.5 / target), 0.5)
    descending = graph.add("TopK", points, [n_classes], axis=1)
    excess = graph.add("Sub", graph.add("CumSum", descending, 1), 1.0)
    constants = graph.add("Div", excess, np.arange(1, n_classes + 1, dtype=np.float32))
    constant = graph.add("ReduceMax", constants, axes=[1])
    return graph.add("Relu", graph.add("Sub", points, constant))
