"""A multilayer perceptron: its layers, its widths and its activation.

Here belongs what a network is. How it is computed belongs in `mlpcore.backends`, how it is saved
in `mlpcore.store`.
"""

from mlpcore.network.network import (
    ALIGNMENT,
    INITIAL_RANGE,
    Network,
    _rebuild,  # noqa: F401 - where pickles of version 0.1.0 look for it
)

__all__ = ["ALIGNMENT", "INITIAL_RANGE", "Network"]
