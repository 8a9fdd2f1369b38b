"""Variations of the training, judged on held-out digits of MNIST; see docs/recipe.md.

    python benchmarks/variations.py NAME [--seed N] [--epochs N] [--hold-out N]

trains net1 by the recipe `modern` with one variation, and prints a line of JSON. The variations
change what the network is shown, after the deformation of each epoch. None is in the library.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
from collections.abc import Callable

import numpy as np
from scipy import ndimage

from mlpcore import backends, dataset
from mlpcore.data.width import to_inputs
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.evaluation.evaluation import outputs
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import RECIPES
from mlpcore.training.trainer import Trainer
from mlpcore.typing import Float32Array, Float64Array

WIDTHS = (None, 10, 12, 14, 16, 18, 20)

#: The paper's strongest deformation, and one beyond it.
STRONG = DeformationParameters(sigma=5, alpha=38, gamma=20)
STRONGER = DeformationParameters(sigma=5, alpha=50, gamma=20)


class Varied(Trainer):
    """A training whose images go through a variation in each epoch."""

    vary: Callable[[Varied, np.random.Generator], None] | None = None

    def _deform(self) -> None:
        super()._deform()
        if self.vary is not None:
            self.vary(self, np.random.default_rng([self.config.seed, self.state.epoch]))

    def deform_again(self, copy: int) -> None:
        """Deform the training images by another draw of this epoch."""
        config = self.config
        self.config = dataclasses.replace(config, seed=config.seed + 1000 * copy)
        super()._deform()
        self.config = config


def random_widths(trainer: Varied, rng: np.random.Generator) -> None:
    """Bring each image to a width chosen at random, before the deformation."""
    pick, original = rng.integers(0, len(WIDTHS), trainer.n_samples), trainer._train_images
    mixed = np.empty_like(original)
    for i, width in enumerate(WIDTHS):
        mixed[pick == i] = in_width(trainer, width)[pick == i]
    trainer._train_images = mixed
    trainer.deform_again(0)
    trainer._train_images = original


@functools.cache
def in_width(trainer: Varied, width: int | None) -> Float32Array:
    return to_inputs(trainer.dataset.train_images, "unit", width)


def worst(trainer: Varied, rng: np.random.Generator, n: int = 2) -> None:
    """Of n deformations of an image, show that with the greatest loss before the epoch."""
    if trainer.state.epoch == 0:
        return
    labels, rows = trainer.dataset.train_labels, np.arange(trainer.n_samples)

    def losses() -> Float64Array:
        return -outputs(trainer.state.network, trainer._shown, trainer.backend)[rows, labels]

    kept, greatest = trainer._shown.copy(), losses()
    for copy in range(1, n):
        trainer.deform_again(copy)
        found = losses()
        kept[found > greatest] = trainer._shown[found > greatest]
        greatest = np.maximum(found, greatest)
    trainer._shown[:] = kept


def recentred(trainer: Varied, rng: np.random.Generator) -> None:
    """Bring the centre of mass back to where it was before the deformation."""
    for shown, original in zip(trainer._shown, trainer._train_images):
        back = np.subtract(ndimage.center_of_mass(original), ndimage.center_of_mass(shown))
        shown[:] = ndimage.shift(shown, back, order=1)


def contrast(trainer: Varied, rng: np.random.Generator) -> None:
    """Raise grey levels to a power between 0.6 and 1.65, another for each image."""
    powers = np.exp(rng.uniform(-0.5, 0.5, trainer.n_samples)).astype(np.float32)
    trainer._shown[:] = trainer._shown ** powers[:, None, None]


def thickness(trainer: Varied, rng: np.random.Generator) -> None:
    """Make strokes thicker or thinner, by up to 0.7 of a pixel's step."""
    shown, share = trainer._shown, rng.uniform(-0.7, 0.7, trainer.n_samples).astype(np.float32)
    neighbours = [np.roll(shown, step, axis) for step in (-1, 0, 1) for axis in (1, 2)]
    thick, thin = np.maximum.reduce(neighbours), np.minimum.reduce(neighbours)
    share = share[:, None, None]
    changed = np.where(share > 0, share * (thick - shown), share * (shown - thin))
    shown[:] = shown + changed


def deslanted(images: Float32Array) -> Float32Array:
    """Shear images in [-1, 1] so that their ink has no slant, and centre their mass."""
    result, centre = np.empty_like(images), (images.shape[1] - 1) / 2
    y, x = np.mgrid[: images.shape[1], : images.shape[2]].astype(float)
    for i, ink in enumerate((images + 1) / 2):
        mass = ink.sum()
        my, mx = (ink * y).sum() / mass, (ink * x).sum() / mass
        slant = (ink * (y - my) * (x - mx)).sum() / (ink * (y - my) ** 2).sum()
        offset = [my - centre, mx - centre - slant * centre]
        result[i] = ndimage.affine_transform(ink, [[1, 0], [slant, 1]], offset, order=1)
    return 2 * result - 1


VARIATIONS = {
    "none": None,
    "strong": None,
    "stronger": None,
    "deslanted": None,
    "deslanted-strong": None,
    "random-widths": random_widths,
    "worst-of-2": worst,
    "worst-of-4": functools.partial(worst, n=4),
    "recentred": recentred,
    "contrast": contrast,
    "thickness": thickness,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("name", choices=VARIATIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--hold-out", type=int, default=20_000)
    options = parser.parse_args()
    data = dataset.load(name="mnist")
    if options.hold_out:  # else the test images judge
        data = data.hold_out(options.hold_out)
    if "deslanted" in options.name:
        changed = {s: deslanted(getattr(data, s)) for s in ("train_images", "test_images")}
        data = dataclasses.replace(data, **changed)
    backend = backends.get("cpu", 1)
    deformation = {"strong": STRONG, "deslanted-strong": STRONG, "stronger": STRONGER}
    config = TrainingConfig(
        epochs=options.epochs,
        seed=options.seed,
        backend=backend.name,
        deformation=deformation.get(options.name, DeformationParameters()),
        **RECIPES["modern"].settings_of((1000, 500)),
    )
    trainer = Varied(config, data, backend)
    trainer.vary = VARIATIONS[options.name]
    trainer.run()
    widths = WIDTHS if options.name == "random-widths" else WIDTHS[:1]
    views = [to_inputs(data.test_images, "unit", width) for width in widths]
    answers = [outputs(trainer.state.network, view, backend) for view in views]
    result = {"name": options.name, "seed": options.seed, "epochs": options.epochs}
    for key, probabilities in (("", answers[0]), ("_mean_of_widths", sum(answers) / len(answers))):
        right = probabilities[np.arange(len(data.test_labels)), data.test_labels]
        result["errors" + key] = int((probabilities.argmax(axis=1) != data.test_labels).sum())
        result["loss" + key] = round(float(-np.log(np.maximum(right, 1e-12)).mean()), 5)
    last = trainer.state.history[-10:]
    result["errors_of_last_10"] = float(np.mean([each.test_errors for each in last]))
    result["validation_errors"] = last[-1].validation_errors
    print(json.dumps(result))


if __name__ == "__main__":
    main()
