"""Multilayer perceptrons: layer sizes, weights and activations.

Computing with a network belongs in `mlpcore.backends`, training it in `mlpcore.training`, and
saving it in `mlpcore.store`.
"""

from mlpcore.network.network import Network

__all__ = ["Network"]
