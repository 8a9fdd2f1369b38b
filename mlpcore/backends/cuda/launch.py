"""Kernel launches, and a layer as the kernels see it.

A launch is made of sizes and device addresses alone. So the driver of real devices and the
emulation run the same host code. The kernels in ``cuda/*.cu`` describe shapes, grids and the order
of sums.
"""

from dataclasses import dataclass
from typing import NamedTuple

from mlpcore.backends.cuda.sources import constants, kernels, struct
from mlpcore.network import Network
from mlpcore.network.activation import complete

KERNELS = kernels("kernels.cu")

#: Whole numbers of the sources: sizes of blocks and of what they compute, and activations.
CU = constants("kernels.cu")

#: The numbers of activations, among others.
HIDDEN = complete(
    "cuda/activation.cuh",
    {name.lower().replace("_", "-"): number for name, number in vars(CU).items()},
)

#: The progress of training, in device memory.
STATE = struct("kernels.cu", "training_state")


class Launch(NamedTuple):
    """One kernel launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[float, ...]  #: numbers and addresses


def launch(kernel: str, grid: tuple[int, ...], **values: float) -> Launch:
    """A launch with the kernel's block; it takes those of `values` that its parameters name.

    Missing dimensions of the grid are 1.
    """
    source = KERNELS[kernel]
    block = [getattr(CU, name) for name in source.block]
    arguments = tuple(values[name] for name in source.parameters)
    return Launch(kernel, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], arguments)  # type: ignore[arg-type]


def for_each(kernel: str, n: int, **values: float) -> Launch:
    """A launch with one thread for each of `n` elements."""
    return launch(kernel, (ceil_div(n, CU.ELEMENT_THREADS),), n=n, **values)


def ceil_div(n: int, size: int) -> int:
    """The number of pieces of `size` that cover `n`."""
    return -(-n // size)


def padded(n: int) -> int:
    """`n` rounded up to the pitch of rows and columns."""
    return ceil_div(n, CU.PITCH) * CU.PITCH


def activations(network: Network) -> tuple[int, int]:
    """The numbers of the activations of hidden neurons and of outputs."""
    outputs = {"squared": CU.TANH, "cross-entropy": CU.SOFTMAX}
    return HIDDEN[network.activation], outputs[network.loss]


@dataclass(frozen=True)
class Layer:
    """A layer on the device: W[connection][neuron]; connection 0 is the bias."""

    n_in: int
    n_out: int
    weights: int  #: address
    activation: int

    @property
    def rows(self) -> int:
        """Connections, padded."""
        return padded(self.n_in + 1)

    @property
    def stride(self) -> int:
        """Floats from one connection to the next."""
        return padded(self.n_out)

    @property
    def n_strips(self) -> int:
        """Strips of connections, each of which `forward_partial_kernel` sums on its own."""
        return ceil_div(self.n_in + 1, CU.FORWARD_ROWS)

    @property
    def n_patches(self) -> int:
        """Patches of neurons, each of which `backward_partial_kernel` sums on its own."""
        return self.stride // CU.TILE

    @property
    def n_partials(self) -> int:
        """Floats of partial sums that both need."""
        return max(self.n_strips * self.stride, self.n_patches * self.rows)

    @property
    def values(self) -> dict[str, int]:
        """Sizes, weights and activation by the names that kernels give them."""
        names = "n_in", "n_out", "stride", "n_strips", "n_patches", "weights", "activation"
        return {name: getattr(self, name) for name in names} | {"partial_stride": self.rows}
