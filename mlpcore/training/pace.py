"""The duration of an epoch, measured on a part of it."""

import dataclasses

import msgspec

from mlpcore.backends.arguments import IMAGES_PER_GRID
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.training.config import TrainingConfig
from mlpcore.training.trainer import Trainer

#: The measured epoch takes at least so long, unless the part is everything.
MEASURED_SECONDS = 2.0


def seconds_per_epoch(
    config: TrainingConfig, dataset: Dataset, backend: Backend
) -> tuple[float, float]:
    """Seconds that an epoch of a run will take, with and without validation.

    Trains another network of the same settings for two epochs of the first images, of twice as many
    each time, until the second epoch takes `MEASURED_SECONDS`. The first one is slower: more of a
    new network's rectifiers are active. The time of an epoch is in proportion to its images. Errors
    are those of `Trainer` and its `run`.
    """
    config = msgspec.structs.replace(config, epochs=2)
    n, n_test = len(dataset.train_labels), len(dataset.test_labels)
    part = min(IMAGES_PER_GRID, n)
    while True:
        part_test = n_test * part // n
        some = dataclasses.replace(
            dataset,
            train_pixels=dataset.train_pixels[:part],
            train_labels=dataset.train_labels[:part],
            test_pixels=dataset.test_pixels[:part_test],
            test_labels=dataset.test_labels[:part_test],
        )
        trainer = Trainer(config, some, backend)
        trainer.run()
        last = trainer.state.history[-1]
        if part == n or last.seconds >= MEASURED_SECONDS:
            validation = last.evaluation_seconds * part / (part + part_test)
            return last.seconds * n / part, (last.seconds - validation) * n / part
        part = min(2 * part, n)
