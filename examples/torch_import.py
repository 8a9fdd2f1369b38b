"""An exported network in PyTorch; ``python torch_import.py net.safetensors`` prints it."""

from __future__ import annotations

import argparse
import os
from functools import partial
from itertools import pairwise

import torch
from safetensors import safe_open
from torch import nn


def scaled_tanh(a: torch.Tensor) -> torch.Tensor:
    return 1.7159 * torch.tanh(0.6666 * a)


class Perceptron(nn.Module):
    """A network from images (n, inputs) to outputs (n, classes).

    The images are in [-1, 1], or in [0, 1] if the file says that its input_range is "unit".
    """

    def __init__(self, layer_sizes: list[int], activation: str = "tanh", loss: str = "squared"):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(layer_sizes))
        self.activate = {"tanh": scaled_tanh, "relu": torch.relu}[activation]
        outputs = {"squared": scaled_tanh, "cross-entropy": partial(torch.softmax, dim=1)}
        self.activate_outputs = outputs[loss]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = self.activate(layer(x))
        return self.activate_outputs(self.layers[-1](x))


def load(path: str | os.PathLike[str]) -> Perceptron:
    """Reads a file that `mlpcore export --safetensors` wrote, or the weights of a run."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        layer_sizes = [int(size) for size in metadata["architecture"].split(",")]
        names = {name: metadata[name] for name in ("activation", "loss") if name in metadata}
        network = Perceptron(layer_sizes, **names)
        network.load_state_dict({name: file.get_tensor(name) for name in network.state_dict()})
    return network


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", metavar="FILE.safetensors")
    print(load(parser.parse_args().file))
