from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlpcore.typing import ArrayLike, Float32Array

__all__ = ["ALIGNMENT", "INITIAL_RANGE", "Network"]

INITIAL_RANGE: float
"""Initial weights and biases are uniform in plus or minus this (paper, "Architectures")."""

ALIGNMENT: int
"""Bytes of a cache line. Each buffer starts at a multiple of it, and so does each row."""

class _Views(tuple[Float32Array, ...]):
    def __setitem__(self, layer: int, values: ArrayLike) -> None: ...

class Network:
    def __init__(
        self,
        layer_sizes: Iterable[int],
        seed: int | None = None,
        activation: str = "tanh",
        loss: str = "squared",
        init: str = "uniform",
    ) -> None: ...
    @property
    def layer_sizes(self) -> tuple[int, ...]: ...
    @property
    def activation(self) -> str: ...
    @property
    def loss(self) -> str: ...
    @property
    def weights(self) -> _Views: ...
    @property
    def biases(self) -> _Views: ...
    @property
    def n_layers(self) -> int: ...
    @property
    def n_parameters(self) -> int: ...
    def initialise(self, seed: int, init: str = "uniform") -> None: ...
    def is_finite(self) -> bool: ...
    def assign(self, other: Network) -> None: ...
    def copy(self) -> Network: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

def _rebuild(
    layer_sizes: tuple[int, ...], buffer: Float32Array, activation: str, loss: str
) -> Network: ...
