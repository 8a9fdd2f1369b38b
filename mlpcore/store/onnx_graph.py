"""The operators and constants of an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlpcore.typing import AnyArray, ArrayLike
from mlpcore.version import __version__

#: The operators that we use have not changed since this version.
OPSET, IR_VERSION = 13, 7


class Graph:
    """The operators and constants of an ONNX graph."""

    def __init__(self, onnx: Any):
        self.onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def constant(self, name: str, value: ArrayLike, dtype: type = np.float32) -> str:
        """Add a constant, once for each name; return its name."""
        if name not in self._constants:
            array: AnyArray = np.asarray(value, dtype, order="C")
            self._constants[name] = self.onnx.numpy_helper.from_array(array, name)
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Append an operator; return the name of its result."""
        name = name or f"{operator.lower()}_{len(self._nodes)}"
        node = self.onnx.helper.make_node(operator, inputs, [name], name, **attributes)
        self._nodes.append(node)
        return name

    def extend(self, graph: Any) -> None:
        """Append the operators and constants of another graph, whose names are different."""
        self._nodes += graph.node
        self._constants |= {each.name: each for each in graph.initializer}

    def model(
        self, pixel_shape: tuple[int, int], n_classes: int, text: str, metadata: dict[str, str]
    ) -> Any:
        """The model that computes ``outputs`` from ``pixels``, as the text says."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        pixels = helper.make_tensor_value_info("pixels", types.UINT8, ["n", *pixel_shape])
        outputs = helper.make_tensor_value_info("outputs", types.FLOAT, ["n", n_classes])
        constants = list(self._constants.values())
        graph = helper.make_graph(
            self._nodes, "mlpcore", [pixels], [outputs], constants, doc_string=text
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="mlpcore",
            producer_version=__version__,
            doc_string=text,
        )
        helper.set_model_props(model, metadata)
        return model
