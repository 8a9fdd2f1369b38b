"""A trained network in PyTorch: its safetensors file holds all that is needed.

python examples/torch_import.py runs/net1/best.safetensors
"""

from __future__ import annotations

import itertools
import sys

import torch
from safetensors import safe_open
from torch import nn


class ScaledTanh(nn.Module):
    """y(a) = 1.7159 tanh(0.6666 a), after every layer, the last one too."""

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return 1.7159 * torch.tanh(0.6666 * a)


def load(path: str) -> nn.Sequential:
    """A module from inputs (n, 841) in [-1, 1], float32, to outputs (n, 10)."""
    model = nn.Sequential()
    with safe_open(path, framework="pt") as file:
        sizes = [int(size) for size in file.metadata()["architecture"].split(",")]
        for i, (n_in, n_out) in enumerate(itertools.pairwise(sizes)):
            linear = nn.Linear(n_in, n_out)
            linear.weight.data = file.get_tensor(f"layers.{i}.weight")
            linear.bias.data = file.get_tensor(f"layers.{i}.bias")
            model.extend([linear, ScaledTanh()])
    return model


if __name__ == "__main__":
    print(load(sys.argv[1]))
