"""What a multilayer perceptron is: its layer sizes, its weights and its activation.

Computing with a network belongs in `mlpcore.backends`, training it in `mlpcore.training`, and
saving it in `mlpcore.store`.
"""

from mlpcore.network.network import Network

__all__ = ["Network"]
