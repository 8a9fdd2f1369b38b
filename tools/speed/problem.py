"""Images and a network of an architecture: the same for all that are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from mlpcore import backends, philox
from mlpcore.backends.base import Backend
from mlpcore.data.dataset import Dataset
from mlpcore.data.pixels import BACKGROUNDS
from mlpcore.deformation import deform
from mlpcore.network import Network
from mlpcore.network.architecture import count_parameters
from mlpcore.training import Trainer, TrainingConfig
from mlpcore.training.recipes import RECIPES
from mlpcore.typing import AnyArray, Float32Array, Int32Array, UInt8Array
from speed.timing import Case

#: Images that the routines work on.
IMAGES = 10_000

#: Samples after which trained weights are compared with the oracle's, and multiply-adds that the
#: oracle may spend on them: in float64 and beyond any cache, it does some 1e8 in a second.
CHECKED, ORACLE_BUDGET = 64, 5e8

#: Greatest relative error of a right result. Rounding stays below a tenth of it; a loss averaged
#: over the outputs, a batch of two samples or a missing bias are far beyond it.
TOLERANCE = 1e-3

#: Half a unit in the last place of float32.
EPSILON = 2.0**-24

#: Arrays, each with what it started from: weights before training, 0 for any other result.
#: Errors are relative to the greatest difference from the start.
Outcome: TypeAlias = list[tuple[AnyArray, AnyArray | float]]

#: What a backend makes of a few samples of a problem, and what is timed.
Enter: TypeAlias = Callable[["Problem", Backend], tuple[Outcome, Case]]


@dataclass(eq=False)
class Problem:
    """A network, images (n, h, w), labels, the order of training and its rate."""

    network: Network
    images: Float32Array
    labels: UInt8Array
    order: Int32Array
    rate: float
    _right: dict[Enter, Outcome] = field(default_factory=dict)  #: the oracle's results

    @property
    def flat_images(self) -> Float32Array:
        """Images (n, h w)."""
        return self.images.reshape(len(self.images), -1)

    @property
    def checked(self) -> int:
        """Samples of training that the oracle can afford."""
        products = 3 * count_parameters(self.network.layer_sizes)
        return int(np.clip(ORACLE_BUDGET / products, 2, CHECKED))

    def change(self, network: Network) -> Outcome:
        """A network's weights and biases with those that they started from."""
        start = self.network
        return list(zip([*network.weights, *network.biases], [*start.weights, *start.biases]))

    def error(self, routine: Enter, got: Outcome) -> float:
        """Greatest relative error beside the float64 oracle; infinite for NaN or another shape.

        A change of weights that is itself no more than the rounding of so many updates is not
        held against a result in float32.
        """
        if routine not in self._right:
            self._right[routine], _ = routine(self, backends.get("reference"))
        errors = []
        for (array, _), (want, start) in zip(got, self._right[routine], strict=True):
            scale = max(np.abs(want - start).max(), 1e-30)
            if np.ndim(start):
                scale = max(scale, self.checked * EPSILON * np.abs(want).max() / TOLERANCE)
            fits = np.shape(array) == np.shape(want) and np.isfinite(array).all()
            errors.append(np.abs(np.asarray(array, float) - want).max() / scale if fits else np.inf)
        return float(max(errors))


def make_problem(
    data: Dataset, hidden: Sequence[int], recipe: str, images: int = IMAGES
) -> Problem:
    """A network of a recipe, and samples of its next epoch, whose images are deformed.

    Rectifiers are trained for an epoch before: inactive neurons come with training.
    """
    settings = RECIPES[recipe].settings_of(hidden)
    config = TrainingConfig(hidden_layers=tuple(hidden), epochs=1, **settings)
    trainer = Trainer(config, data, backends.get("cpu"))
    if config.activation == "relu":
        trainer.run()
    ranged, labels = data.as_inputs(config.input_range), data.train_labels[:images]
    drawing = config.deformation, config.seed, 1, trainer.backend
    around = BACKGROUNDS[config.input_range]
    inputs = deform(ranged.train_images[:images], labels, *drawing, background=around)
    return Problem(
        trainer.state.network,
        inputs,
        labels,
        order=philox.permutation(len(inputs), config.seed, 1),
        # A step changes a neuron's sum by about rate * width of its error; above 2 the sum would
        # grow, and rounding errors with it.
        rate=min(config.learning_rate, 2 / max(trainer.state.network.layer_sizes)),
    )
