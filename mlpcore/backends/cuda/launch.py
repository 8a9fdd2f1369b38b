"""The launch table: the kernels of each operation, with their grids, blocks and arguments.

These are pure functions of sizes and device addresses. So the driver of real devices and the
emulation run the same host code. The kernels in ``cuda/*.cu`` describe shapes and the order of
sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mlpcore.backends.arguments import TAPS
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


def _launch(kernel: str, grid: tuple[int, ...], **values: float) -> Launch:
    """A launch with the kernel's block; it takes those of `values` that its parameters name.

    Missing dimensions of the grid are 1.
    """
    found = KERNELS[kernel]
    block = [getattr(CU, name) for name in found.block]
    arguments = tuple(values[name] for name in found.parameters)
    return Launch(kernel, (*grid, 1, 1)[:3], (*block, 1, 1)[:3], arguments)  # type: ignore[arg-type]


def _for_each(kernel: str, n: int, **values: float) -> Launch:
    """A launch with one thread for each of `n` elements."""
    return _launch(kernel, (blocks(n, CU.ELEMENT_THREADS),), n=n, **values)


def blocks(n: int, size: int) -> int:
    """How many blocks of `size` cover `n`."""
    return (n + size - 1) // size


def padded(n: int) -> int:
    """`n` rounded up to the pitch of rows and columns."""
    return blocks(n, CU.PITCH) * CU.PITCH


def activations(network: Network) -> tuple[int, int]:
    """What the hidden neurons and the outputs of a network compute."""
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
        """Strips of connections; `forward` sums each on its own."""
        return blocks(self.n_in + 1, CU.FORWARD_ROWS)

    @property
    def n_patches(self) -> int:
        """Patches of neurons; `backward` sums each on its own."""
        return self.stride // CU.TILE

    @property
    def n_partials(self) -> int:
        """Floats of partial sums that `forward` and `backward` need."""
        return max(self.n_strips * self.stride, self.n_patches * self.rows)

    @property
    def values(self) -> dict[str, int]:
        """What kernels call its sizes, weights and activation."""
        names = "n_in", "n_out", "stride", "n_strips", "n_patches", "weights", "activation"
        return {name: getattr(self, name) for name in names} | {"partial_stride": self.rows}


# ---- one layer, one sample -----------------------------------------------------------------


def forward(layer: Layer, inputs: int, partials: int, outputs: int) -> list[Launch]:
    """Outputs (n_out) of inputs (n_in); of a softmax, the sums."""
    values = layer.values | {"inputs": inputs, "partials": partials, "outputs": outputs}
    strips = blocks(layer.n_out, CU.FORWARD_THREADS), layer.n_strips
    return [
        _launch("forward_partial_kernel", strips, **values),
        _launch("forward_sum_kernel", (blocks(layer.n_out, CU.SUM_THREADS),), **values),
    ]


def backward(
    layer: Layer, hidden: int, deltas: int, states: int, partials: int, below: int
) -> list[Launch]:
    """Deltas (n_in) of the layer below from deltas (n_out) and states (n_in).

    `hidden` is the activation of the layer below.
    """
    values = layer.values | {"deltas": deltas, "states": states, "partials": partials}
    values |= {"activation": hidden, "deltas_below": below}
    patches = layer.n_patches, blocks(layer.n_in + 1, CU.TILE)
    return [
        _launch("backward_partial_kernel", patches, **values),
        _launch("backward_sum_kernel", (blocks(layer.n_in, CU.SUM_THREADS),), **values),
    ]


def update(layer: Layer, inputs: int, deltas: int, rate: int) -> list[Launch]:
    """W -= eta x delta^T with the learning rate in device memory."""
    grid = blocks(layer.n_out, CU.UPDATE_THREADS), blocks(layer.n_in + 1, CU.UPDATE_ROWS)
    values = layer.values | {"inputs": inputs, "deltas": deltas, "learning_rate": rate}
    return [_launch("update_kernel", grid, **values)]


# ---- a training step -----------------------------------------------------------------------


def gather(images: int, order: int, state: int, n_in: int, inputs: int) -> list[Launch]:
    """The inputs (n_in) of the state's step."""
    values = {"images": images, "order": order, "state": state, "inputs": inputs}
    return [_for_each("gather_kernel", n_in, n_in=n_in, **values)]


def output_deltas(
    layer: Layer, outputs: int, labels: int, order: int, state: int, deltas: int
) -> list[Launch]:
    """Deltas (n_out) of the output layer; adds to loss and errors and goes to the next step.

    `outputs` is what `forward` gives.
    """
    kernel = "softmax_deltas_kernel" if layer.activation == CU.SOFTMAX else "output_deltas_kernel"
    values = layer.values | {"outputs": outputs, "sums": outputs, "labels": labels}
    return [_launch(kernel, (1,), **values, order=order, state=state, deltas=deltas)]


# ---- many samples --------------------------------------------------------------------------


def predict_layer(layer: Layer, inputs: int, n: int, outputs: int) -> list[Launch]:
    """Outputs (n, n_out) of inputs (n, n_in); of a softmax, the sums."""
    grid = blocks(layer.n_out, CU.PRODUCT_TILE), blocks(n, CU.PRODUCT_TILE)
    values = layer.values | {"inputs": inputs, "n": n, "outputs": outputs}
    return [_launch("predict_layer_kernel", grid, **values)]


def probabilities(layer: Layer, n: int, outputs: int) -> list[Launch]:
    """Turns the sums (n, n_out) of a softmax into probabilities; nothing for other layers."""
    if layer.activation != CU.SOFTMAX or n == 0:
        return []
    return [_launch("softmax_kernel", (n,), n_out=layer.n_out, outputs=outputs)]


# ---- the order of an epoch -----------------------------------------------------------------


def permutation(key: tuple[int, int], epoch: int, n: int, keys: int, order: int) -> list[Launch]:
    """The order (n) int32 of an epoch; `keys` is room for n sort keys of 8 bytes."""
    return [
        _for_each("order_keys_kernel", n, key0=key[0], key1=key[1], epoch=epoch, keys=keys),
        _for_each("rank_kernel", n, keys=keys, order=order),
    ]


def input_products(images: int, n_in: int, order: int, steps: int, products: int) -> list[Launch]:
    """Products (steps) of each step's inputs and the next one's; nothing for the last step."""
    if steps == 1:
        return []
    values = {"images": images, "order": order, "n_in": n_in, "products": products}
    return [_launch("input_products_kernel", (steps - 1,), **values)]


# ---- deformation ---------------------------------------------------------------------------


def noise(
    key: tuple[int, int],
    epoch: int,
    first_grid: int,
    n_grids: int,
    shape: tuple[int, int],
    out: int,
) -> list[Launch]:
    """Noise (n_grids, 2, rows, columns) of grids `first_grid` and on."""
    rows, columns = shape
    grid = blocks(columns, CU.NOISE_THREADS), blocks(rows, CU.NOISE_ROWS), 2 * n_grids
    values = {"key0": key[0], "key1": key[1], "epoch": epoch, "first_grid": first_grid}
    return [_launch("noise_kernel", grid, **values, rows=rows, columns=columns, noise=out)]


def middle_shape(
    shape: tuple[int, int], taps_shape: tuple[int, int], out_shape: tuple[int, int]
) -> tuple[int, int]:
    """Rows and columns between the two convolutions of noise of a shape."""
    if _is_small(taps_shape):
        return out_shape[0], shape[1]
    return shape[0], out_shape[1]


def _is_small(taps_shape: tuple[int, int]) -> bool:
    """Whether shared memory holds the weights of all pixels."""
    return taps_shape[0] == 1 and taps_shape[1] <= TAPS


def displacement_field(
    fields: int,
    shape: tuple[int, int],
    noise: int,
    taps: int,
    taps_shape: tuple[int, int],
    alpha: float,
    middle: int,
    out_shape: tuple[int, int],
    out: int,
) -> list[Launch]:
    """The first rows and columns, (fields, *out_shape), of the fields of noise (fields, *shape).

    `middle` is (fields, *middle_shape), between the two convolutions. `out` may be `noise`, which
    is no longer needed when `out` is written.
    """
    weights = {"taps": taps, "cell": taps_shape[0], "n_taps": taps_shape[1]}
    if not _is_small(taps_shape):
        between = middle_shape(shape, taps_shape, out_shape)
        along = _cells(fields, noise, shape, middle, between, down=0, alpha=1.0, **weights)
        return [along, _cells(fields, middle, between, out, out_shape, 1, alpha=alpha, **weights)]
    (rows, columns), (out_rows, out_columns) = shape, out_shape
    down = blocks(columns, CU.COLUMNS_X), blocks(out_rows, CU.COLUMNS_ROWS), fields
    across = blocks(out_columns, CU.ROWS_X), blocks(out_rows, CU.ROWS_Y), fields
    values = weights | {"noise": noise, "middle": middle, "columns": columns}
    return [
        _launch("convolve_columns_kernel", down, **values, rows=rows),
        _launch("convolve_rows_kernel", across, **values, rows=out_rows, alpha=alpha, field=out),
    ]


def _cells(
    fields: int,
    source: int,
    shape: tuple[int, int],
    out: int,
    out_shape: tuple[int, int],
    down: int,
    **values: float,
) -> Launch:
    """A convolution with any Gaussian, along the rows or down the columns."""
    values |= dict(zip(("in_rows", "in_columns", "out_rows", "out_columns"), shape + out_shape))
    grid = blocks(out_shape[1], CU.ROWS_X), blocks(out_shape[0], CU.ROWS_Y), fields
    return _launch("convolve_cells_kernel", grid, source=source, out=out, down=down, **values)


def affine_maps(
    labels: int,
    n: int,
    first: int,
    angles: int,
    scale: float,
    key: tuple[int, int],
    epoch: int,
    maps: int,
) -> list[Launch]:
    """Random matrices (n, 2, 2) for images with these labels, number `first` and on."""
    values = {"labels": labels, "first": first, "angles": angles, "scale": scale}
    values |= {"key0": key[0], "key1": key[1], "epoch": epoch, "maps": maps}
    return [_for_each("affine_maps_kernel", n, **values)]


def deform(kernel: str, images: int, shape: tuple[int, int, int], **values: float) -> list[Launch]:
    """Images (n, h, w) by a kernel of ``deformation.cu``, whose other parameters are `values`."""
    n, height, width = shape
    grid = n, blocks(height * width, CU.ELEMENT_THREADS)
    return [_launch(kernel, grid, images=images, height=height, width=width, **values)]
