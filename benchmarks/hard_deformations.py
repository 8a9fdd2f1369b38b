"""`mlpcore train`, where the harder of two deformations of each digit is learnt.

The harder one is that with the greater loss under the network as it is at the start of the epoch.
All options are those of `mlpcore train`. With `--hold-out 20000` the errors are those of training
digits that are not learnt. A run that was stopped within an epoch chooses anew among the digits of
its rest, by the network as it is then.
"""

from __future__ import annotations

import sys

import numpy as np

from mlpcore import deformation
from mlpcore.__main__ import main
from mlpcore.commands import train
from mlpcore.data.scaling import BACKGROUNDS
from mlpcore.training.trainer import Trainer
from mlpcore.typing import Float32Array

#: What is added to a run's seed for the second deformation.
OTHER_SEED = 1 << 20

#: Digits that are deformed and judged at once. Random fields are shared by the images of a grid, so
#: this is a multiple of `IMAGES_PER_GRID`.
PART = 4000


class HardTrainer(Trainer):
    """A `Trainer` that learns the harder of two deformations."""

    def _deform(self) -> None:
        super()._deform()
        labels, config = np.asarray(self._train_labels), self.config
        for begin in range(0, self.n_samples, PART):
            self._report("deforming", begin, self.n_samples)
            part = slice(begin, begin + PART)
            first = self._shown[part]
            second = deformation.deform(
                self._train_images[part],
                labels[part],
                config.deformation,
                config.seed + OTHER_SEED,
                self.state.epoch,
                self.backend,
                first=begin,
                background=BACKGROUNDS[config.input_range],
            )
            harder = self._certainty(second, labels[part]) < self._certainty(first, labels[part])
            first[harder] = second[harder]

    def _certainty(self, images: Float32Array, labels: Float32Array) -> Float32Array:
        """The network's output for the class of each image: the loss falls where it rises."""
        outputs = self.backend.predict(self._network, self._flat(images))
        return outputs[np.arange(len(labels)), labels]


if __name__ == "__main__":
    train.Trainer = HardTrainer
    sys.argv.insert(1, "train")
    sys.exit(main())
