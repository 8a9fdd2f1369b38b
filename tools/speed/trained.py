"""A network of rectifiers that has learnt, because its inactive neurons come with training.

It is trained as the recipe `modern` says, on digits that are deformed anew every epoch: on MNIST
where that is on this machine, else on the embedded digits. Nothing is downloaded or kept.
"""

from __future__ import annotations

import math
import time
from functools import lru_cache

import numpy as np

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.backends.simd import DEFAULT_BLOCK
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.scaling import BACKGROUNDS
from mlpcore.deformation.deform import deform
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import RECIPES
from mlpcore.training.state import EpochMetrics
from mlpcore.training.trainer import Observer, Trainer
from mlpcore.typing import Float32Array
from speed.floors import Activity
from speed.problem import CLASSES, IMAGES, Steps

#: Epochs of a run of 30 that a network is trained for at most.
EPOCHS = 3

#: Samples whose active inputs are counted, in blocks as training has them.
COUNTED = 32 * DEFAULT_BLOCK


class Trained(Steps):
    """Such a network, and the samples of its next epoch at the rate then due.

    `samples` is how many it was trained on, `data` the name of the data set, and `activity` has
    the active inputs of each layer.
    """

    def __init__(self, hidden: tuple[int, ...], seconds: float):
        backend, digits = backends.get("cpu"), local_digits()
        recipe = RECIPES["modern"].settings_of(hidden)
        config = TrainingConfig(hidden_layers=hidden, **recipe)
        network, samples = train(config, digits, backend, seconds)
        n = len(digits.train_labels)
        epoch = math.ceil(samples / n)  # the first one of which it has seen nothing
        images = deform(
            digits.as_inputs(config.input_range).train_images,
            digits.train_labels,
            config.deformation,
            config.seed,
            epoch,
            backend,
            background=BACKGROUNDS[config.input_range],
        ).reshape(n, -1)
        # The order of a small set is repeated, because each timing takes thousands of samples.
        order = np.resize(backend.permutation(n, config.seed, epoch), max(n, IMAGES))
        done, rest = divmod(samples, n)
        rate = config.learning_rate_at(done, rest / n)
        labels = digits.train_labels
        targets = np.eye(CLASSES, dtype=np.float32)[labels]
        super().__init__(network, images, labels, targets, order, rate)
        self.data, self.samples = digits.name, samples
        self.activity = count_active(network, images[order[:COUNTED]], backend)

    @property
    def foreground(self) -> float:
        """The share of the inputs that is not background."""
        return self.activity.sample[0] / self.layer_sizes[0]

    def description(self) -> str:
        """What the network was trained on, and its active inputs."""
        sample, block = (
            ", ".join(f"{count / n:.0%}" for count, n in zip(counts, self.layer_sizes))
            for counts in (self.activity.sample, self.activity.block)
        )
        return (
            f"The rectifiers were trained on {self.samples:,} samples, deformed, of {self.data}. "
            f"Active inputs of each layer: {sample} for a sample, {block} for a block of "
            f"{self.activity.samples}."
        )


@lru_cache(maxsize=1)
def trained(hidden: tuple[int, ...], seconds: float) -> Trained:
    """The one for these hidden layers, which several routines ask for one after the other."""
    return Trained(hidden, seconds)


def local_digits() -> Dataset:
    """MNIST if it is on this machine, else the embedded digits."""
    try:
        return dataset.load(name="mnist", download=False)
    except InputError:
        return dataset.load(name="digits")


class _Limit(Observer):
    """Stops a training after some seconds of it, or `EPOCHS`."""

    def __init__(self, seconds: float):
        self.seconds, self.end = seconds, math.inf

    def on_progress(self, trainer: Trainer, phase: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if phase == "training":  # the first deformation takes none of the time
            self.end = min(self.end, now + self.seconds)
        if now > self.end:
            trainer.request_stop()

    def on_epoch_end(self, trainer: Trainer, metrics: EpochMetrics) -> None:
        if trainer.state.epoch == EPOCHS:
            trainer.request_stop()


def train(
    config: TrainingConfig, digits: Dataset, backend: Backend, seconds: float
) -> tuple[Network, int]:
    """The first epochs of a run: the network, and the number of samples that it was trained on."""
    trainer = Trainer(config, digits, backend, [_Limit(seconds)])
    trainer.run()
    state = trainer.state
    return state.network, state.epoch * trainer.n_samples + state.progress.samples


def count_active(network: Network, images: Float32Array, backend: Backend) -> Activity:
    """How many inputs of each layer are active for images (n, inputs), n a number of blocks."""
    states = [images]
    for layer in range(network.n_layers - 1):
        states.append(backend.forward(network, layer, states[-1]))
    active = [(x != 0).reshape(-1, DEFAULT_BLOCK, x.shape[1]) for x in states]
    return Activity(
        sample=tuple(float(np.mean(a.sum(axis=2))) for a in active),
        block=tuple(float(np.mean(a.any(axis=1).sum(axis=1))) for a in active),
        samples=DEFAULT_BLOCK,
    )
