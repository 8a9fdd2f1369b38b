"""An exported network in PyTorch; ``python torch_import.py net.safetensors`` prints it."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import torch
from safetensors import safe_open
from torch import nn


class ScaledTanhNetwork(nn.Module):
    """A network from images (n, inputs) in [-1, 1] to outputs (n, classes)."""

    def __init__(self, layer_sizes: list[int]):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(layer_sizes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = 1.7159 * torch.tanh(0.6666 * layer(x))
        return x


def load(path: str | os.PathLike[str]) -> ScaledTanhNetwork:
    """Reads a file that tools/export.py wrote, or the weights of a run."""
    with safe_open(path, framework="pt") as file:
        layer_sizes = [int(size) for size in file.metadata()["architecture"].split(",")]
        network = ScaledTanhNetwork(layer_sizes)
        network.load_state_dict({name: file.get_tensor(name) for name in network.state_dict()})
    return network


if __name__ == "__main__":
    print(load(sys.argv[1]))
