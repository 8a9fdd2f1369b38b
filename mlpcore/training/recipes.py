"""Named settings that belong together: the paper's, and a combination that gave fewer errors."""

from __future__ import annotations

from dataclasses import dataclass

from mlpcore.training.config import PAPER_RATIO, USUAL_TARGET


@dataclass(frozen=True)
class Recipe:
    """The settings of a run for which its command names no value.

    Parameters
    ----------
    target
        `TrainingConfig.target`.
    fall
        The learning rate of the first layer, divided by that of the last layer. In between the
        rate falls by the same factor from layer to layer.
    """

    target: float
    fall: float

    def learning_rate_ratio(self, n_hidden: int) -> float:
        """`TrainingConfig.learning_rate_ratio` for this number of hidden layers."""
        return self.fall ** (1 / n_hidden) if n_hidden else PAPER_RATIO


RECIPES = {
    "paper": Recipe(target=USUAL_TARGET, fall=PAPER_RATIO),
    "saturating": Recipe(target=1.5, fall=4.0),
}
"""``saturating`` has targets at which the scaled tanh saturates, and learning rates that fall
from layer to layer (docs/recipe.md)."""

DEFAULT_RECIPE = "paper"
