"""Settings that belong together, by name: the paper's, and what has proved better than them."""

from __future__ import annotations

from dataclasses import dataclass

from mlpcore.training.config import PAPER_RATIO, USUAL_TARGET


@dataclass(frozen=True)
class Recipe:
    """What a run is trained by where its own options say nothing.

    Parameters
    ----------
    target
        Of the output for the class (`TrainingConfig.target`).
    fall
        How many times the first layer's learning rate is the last one's; in between it falls by
        the same factor from layer to layer.
    """

    target: float
    fall: float

    def learning_rate_ratio(self, n_hidden: int) -> float:
        """`TrainingConfig.learning_rate_ratio` of a network with so many hidden layers."""
        return self.fall ** (1 / n_hidden) if n_hidden else PAPER_RATIO


RECIPES = {
    "paper": Recipe(target=USUAL_TARGET, fall=PAPER_RATIO),
    "saturating": Recipe(target=1.5, fall=4.0),
}
"""The paper's settings, with the usual targets, which it does not state; and targets where the
scaled tanh saturates, with learning rates that fall from layer to layer (docs/recipe.md)."""

DEFAULT_RECIPE = "paper"
