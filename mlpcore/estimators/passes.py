"""What the classifier computes with a network: one pass of training, and outputs."""

from __future__ import annotations

import numpy as np

from mlpcore.backends.base import Backend
from mlpcore.deformation.deform import deform
from mlpcore.errors import InputError
from mlpcore.estimators.samples import Samples
from mlpcore.evaluation import evaluation
from mlpcore.network.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.trainer import Diverged
from mlpcore.typing import Float32Array


def train_in_order(
    network: Network,
    images: Float32Array,
    samples: Samples,
    config: TrainingConfig,
    epoch: int,
    backend: Backend,
) -> float:
    """Trains a network on samples in their order, their images deformed for an epoch.

    Returns the mean loss, weighted as the samples are. The learning rate is that of the beginning
    of a run, after its warm-up. Raises `Diverged` when weights or loss are no longer finite.
    """
    shown, labels = backend.put(images), backend.put(samples.codes)
    if not config.deformation.is_identity:
        shown = deform(shown, labels, config.deformation, config.seed, epoch, backend)
    inputs = shown.reshape(len(images), network.layer_sizes[0])
    order = backend.put(np.arange(len(images), dtype=np.int32))
    loaded = backend.load(network)
    rates = config.layer_rates(config.learning_rate)
    weights, total = None, float(len(images))
    if samples.weights is not None:
        weights = backend.put(samples.weights)
        total = float(samples.weights.sum(dtype=np.float64))
    result = backend.train(
        loaded, inputs, labels, order, rates, target=config.target, sample_weight=weights
    )
    backend.store(loaded, network)
    if not (np.isfinite(result.loss) and network.is_finite()):
        raise Diverged(
            f"training diverged at learning rate {config.learning_rate:.4g}: loss or weights are "
            "not finite; expected a lower learning rate"
        )
    return result.loss / total


def outputs(network: Network, X: Float32Array, backend: Backend) -> Float32Array:
    """Outputs (n, n_classes) for X (n, n_features), or an InputError when a sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = evaluation.outputs(network, X, backend).astype(np.float32)
    greatest = float(np.abs(X).max(initial=0.0))
    bound = 0.0
    if greatest > 1e9:  # smaller inputs cannot overflow: trained weights are far below 1e20
        sums = np.abs(network.weights[0]).sum(axis=1, dtype=np.float64)
        bound = greatest * float(sums.max())
    # Where a sum overflows, outputs may be finite, but wrong.
    if bound > float(np.finfo(np.float32).max) or not np.isfinite(found).all():
        raise InputError(
            f"X holds {X.flat[np.abs(X).argmax()]:.4g}, with which sums overflow float32: "
            "expected about -1 to 1"
        )
    return found
