from __future__ import annotations

from mlpcore.backends.base import Backend, LearningRate, Poll, Progress, TrainingResult
from mlpcore.network import Network
from mlpcore.typing import AnyArray, Float32Array, Int32Array, UInt8Array

__all__ = [
    "DEFAULT_BLOCK",
    "INSTRUCTION_SETS",
    "MAX_BLOCK",
    "MAX_THREADS",
    "PACKED_FROM",
    "SCHEDULES",
    "SimdBackend",
    "unavailable_reason",
]

INSTRUCTION_SETS: tuple[str, ...]
"""From the plainest to the widest."""

SCHEDULES: tuple[str, ...]
"""When updates are applied. "packed" is "deferred" with packed weights for large networks."""

DEFAULT_BLOCK: int
"""Samples between two updates of the deferred schedule."""

PACKED_FROM: int
"""The packed schedule packs networks with this many weights above the first layer, or more."""

MAX_BLOCK: int
MAX_THREADS: int

def unavailable_reason(name: str) -> str | None: ...

class SimdBackend(Backend):
    __doc__ = ""  # not that of Backend, which the reference would show

    def __init__(
        self,
        name: str,
        threads: int | None = None,
        schedule: str = "sparse",
        block: int = 32,
        packed_from: int = 1 << 20,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def threads(self) -> int: ...
    @property
    def schedule(self) -> str: ...
    @property
    def block(self) -> int: ...
    @property
    def packed_from(self) -> int: ...
    @property
    def description(self) -> str: ...
    @property
    def packs(self) -> bool: ...
    def pass_bytes(self, network: Network) -> list[int]: ...
    def put(self, array: AnyArray) -> AnyArray: ...
    def load(self, network: Network) -> Network: ...
    def store(self, loaded: Network, network: Network) -> None: ...
    def forward(self, network: Network, layer: int, inputs: Float32Array) -> Float32Array: ...
    def backward(
        self, network: Network, layer: int, deltas: Float32Array, states: Float32Array
    ) -> Float32Array: ...
    def update(
        self,
        network: Network,
        layer: int,
        inputs: Float32Array,
        deltas: Float32Array,
        learning_rate: float,
    ) -> None: ...
    def packed_passes(
        self, network: Network, layer: int, inputs: Float32Array, deltas: Float32Array
    ) -> tuple[Float32Array, Float32Array]: ...
    def train(
        self,
        network: Network,
        images: Float32Array,
        labels: UInt8Array,
        order: Int32Array,
        learning_rate: LearningRate,
        progress: Progress | None = None,
        target: float = 1.0,
        sample_weight: Float32Array | None = None,
    ) -> TrainingResult: ...
    def predict(self, network: Network, images: Float32Array) -> Float32Array: ...
    def count_errors(
        self,
        network: Network,
        images: Float32Array,
        labels: UInt8Array,
        poll: Poll | None = None,
    ) -> int: ...
    def noise(self, seed: int, epoch: int, grid: int, height: int, width: int) -> Float32Array: ...
    def displacement_field(
        self, noise: Float32Array, taps: Float32Array, alpha: float
    ) -> Float32Array: ...
    def deform_by(
        self,
        images: Float32Array,
        affine: Float32Array,
        displacement: Float32Array,
        background: float = -1.0,
    ) -> Float32Array: ...
    def deform(
        self,
        images: Float32Array,
        affine: Float32Array,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        first: int = 0,
        out: Float32Array | None = None,
        background: float = -1.0,
    ) -> Float32Array: ...
    def deform_selected(
        self,
        images: Float32Array,
        affine: Float32Array,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        indices: AnyArray,
        background: float,
        out: Float32Array,
    ) -> None: ...
    def fields(
        self,
        height: int,
        width: int,
        taps: Float32Array,
        alpha: float,
        seed: int,
        epoch: int,
        indices: AnyArray,
    ) -> Float32Array: ...
