"""The oracle: every operation in NumPy and float64, as plainly as it can be written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from threadpoolctl import ThreadpoolController

from mlpcore import philox
from mlpcore.backends.arguments import GRID, noise_shape
from mlpcore.backends.base import Backend, Poll, Progress, Samples, TrainingResult
from mlpcore.backends.deforming import Deformation, EpochFields
from mlpcore.network import Network
from mlpcore.network.activation import BINARY, HUBER, HUBER_THRESHOLD, OF_TARGETS, A, B, complete
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: Images of a prediction at a time, so that their states stay in the cache.
BATCH = 512


@functools.cache
def _blas() -> ThreadpoolController:
    """NumPy's BLAS. Finding it takes a millisecond."""
    return ThreadpoolController().select(user_api="blas")


def scaled_tanh(a: AnyArray) -> AnyArray:
    """y(a) = A tanh(B a)."""
    return A * np.tanh(B * a)


def softmax(a: AnyArray) -> AnyArray:
    """exp(a_i) / sum_j exp(a_j) over the last axis."""
    powers = np.exp(a - a.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


#: y(a) of hidden neurons, and y'(a) from the state y = y(a).
HIDDEN: dict[str, tuple[Callable[[AnyArray], AnyArray], Callable[[AnyArray], AnyArray]]] = complete(
    __name__,
    {
        "tanh": (scaled_tanh, lambda y: B / A * (A - y) * (A + y)),
        "relu": (lambda a: np.maximum(a, 0), lambda y: (y > 0).astype(y.dtype)),
    },
)


def activate(network: Network, layer: int, a: AnyArray) -> AnyArray:
    """y(a) of a layer's neurons."""
    if layer == network.n_layers - 1:
        if network.loss in OF_TARGETS:
            return a if network.loss == HUBER else np.exp(-np.logaddexp(0, -a))
        return softmax(a) if network.loss == "cross-entropy" else scaled_tanh(a)
    return HIDDEN[network.activation][0](a)


def output_loss(
    network: Network, a: Float64Array, y: Float64Array, wanted: Float64Array
) -> tuple[float, Float64Array]:
    """E of one sample, and dE/da of the outputs y(a)."""
    error = y - wanted
    if network.loss == BINARY:
        return float(np.sum(np.logaddexp(0, a) - wanted * a)), error
    if network.loss == "cross-entropy":
        return -float(np.log(y[wanted.argmax()])), error
    if network.loss == HUBER:
        slope = np.clip(error, -HUBER_THRESHOLD, HUBER_THRESHOLD)
        return float(np.sum(slope * (error - slope / 2))), slope
    return 0.5 * float(np.sum(error**2)), error * HIDDEN["tanh"][1](y)


def _smooth(cells: Float64Array, taps: Float32Array) -> Float64Array:
    """Cells (2, n, any) smoothed along the axis of n: pixels of which each has its weights."""
    n = cells.shape[1] - taps.shape[1] + 1
    phases = [
        sum(tap * cells[:, i : i + n] for i, tap in enumerate(weights))
        for weights in taps.astype(np.float64)
    ]
    return np.stack(phases, axis=2).reshape(2, n * len(taps), -1)


def _step(
    network: Network,
    weights: list[Float64Array],
    biases: list[Float64Array],
    image: Float64Array,
    wanted: Float64Array,
    rates: Float64Array,
    kept: Float64Array,
) -> tuple[Float64Array, float]:
    """One step of on-line back-propagation; returns outputs and loss before the update.

    `kept` (n_layers,) is what weight decay leaves of the weights.
    """
    states = [image]
    for layer, (w, b) in enumerate(zip(weights, biases)):
        sums = w @ states[-1] + b
        states.append(activate(network, layer, sums))
    outputs: Float64Array = states[-1]
    loss, delta = output_loss(network, sums, outputs, wanted)
    _, slope = HIDDEN[network.activation]
    for layer in range(len(weights) - 1, -1, -1):
        below = weights[layer].T @ delta * slope(states[layer])
        weights[layer] *= kept[layer]
        weights[layer] -= rates[layer] * np.outer(delta, states[layer])
        biases[layer] -= rates[layer] * delta
        delta = below
    return outputs, loss


class ReferenceBackend(Backend):
    """NumPy in float64: slow and plain. All other backends are compared with it."""

    name = "reference"
    description = "reference: NumPy, float64, 1 thread"

    def _train(
        self, network: Network, samples: Samples, progress: Progress | None
    ) -> TrainingResult:
        numeric = network.loss in OF_TARGETS
        if numeric:
            wanted = samples.labels.astype(np.float64)
        else:
            wanted = np.eye(network.layer_sizes[-1])[samples.labels]
        if network.loss == "squared":
            wanted = samples.target * (2 * wanted - 1)
        weights = [w.astype(np.float64) for w in network.weights]
        biases = [b.astype(np.float64) for b in network.biases]
        rates = samples.rates
        kept = np.exp(-samples.weight_decay * rates)
        done, errors, loss = 0, 0, 0.0

        def report() -> bool | None:
            return progress and progress(TrainingResult(done, errors, float(loss)))

        try:
            for i in samples.order:
                if report():
                    break
                image = samples.images[i].astype(np.float64)
                factor = float(samples.weights[i])
                outputs, sample_loss = _step(
                    network, weights, biases, image, wanted[i], factor * rates, kept
                )
                loss += factor * sample_loss
                errors += 0 if numeric else int(outputs.argmax() != samples.labels[i])
                done += 1
        except BaseException:
            with suppress(BaseException):  # the first exception counts
                report()
            raise
        finally:
            for layer in range(network.n_layers):
                network.weights[layer][...] = weights[layer]
                network.biases[layer][...] = biases[layer]
        report()
        return TrainingResult(done, errors, float(loss))

    def _predict(
        self, network: Network, images: Float32Array, poll: Poll | None = None
    ) -> Float32Array:
        outputs = np.empty((len(images), network.layer_sizes[-1]), np.float32)
        weights = [w.astype(np.float64).T for w in network.weights]
        biases = [b.astype(np.float64) for b in network.biases]
        with _blas().limit(limits=self.threads):
            for begin in range(0, len(images), BATCH):
                states = images[begin : begin + BATCH].astype(np.float64)
                for layer, (w, b) in enumerate(zip(weights, biases)):
                    states = activate(network, layer, states @ w + b)
                outputs[begin : begin + BATCH] = states
                if poll is not None:
                    poll()
        return outputs

    def _grid_field(self, height: int, width: int, fields: EpochFields, grid: int) -> Float32Array:
        taps, seed = fields.taps, fields.key[0] | fields.key[1] << 32
        shape, purposes = noise_shape(height, width, taps.shape), (philox.NOISE_X, philox.NOISE_Y)
        drawn = [philox.noise(seed, fields.epoch, grid, each, *shape) for each in purposes]
        moves = _smooth(_smooth(np.stack(drawn).astype(np.float64), taps).swapaxes(1, 2), taps)
        field = np.ascontiguousarray(fields.alpha * moves.swapaxes(1, 2), np.float32)
        return field[:, : GRID * height, : GRID * width]

    def _deform(self, job: Deformation) -> None:
        """Images may have other sides than the result, which is as large as displacements."""
        from scipy.ndimage import map_coordinates  # not above: it takes half a second to import

        n, height, width = job.out.shape
        displacement = job.displacement
        if isinstance(displacement, EpochFields):
            displacement = self._fields(height, width, displacement, job.first + np.arange(n))
        images = job.images if job.values is None else job.values[job.images]
        sides, out_sides = np.array(images.shape[:0:-1]), np.array([width, height])
        ratio = np.divide(sides - 1, out_sides - 1, out=np.ones(2), where=sides != out_sides)
        y, x = np.mgrid[:height, :width].astype(np.float64)
        offset = np.stack([x, y], axis=-1) - (out_sides - 1) / 2
        for i in range(n):
            moved = offset @ job.affine[i].astype(np.float64).T
            moved += displacement[i].transpose(1, 2, 0)
            source = ratio * moved + (sides - 1) / 2
            map_coordinates(
                images[i].astype(np.float64),
                source.transpose(2, 0, 1)[::-1],  # y before x
                output=job.out[i],
                order=1,
                mode="grid-constant",
                cval=job.background,
            )
