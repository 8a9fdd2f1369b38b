"""The operators and constants of an ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlpcore.errors import InputError
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
