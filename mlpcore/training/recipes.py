"""Named settings that belong together: today's usual ones, the paper's, and a change of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlpcore.training.config import PAPER_RATIO


@dataclass(frozen=True)
class Recipe:
    """The settings of a run for which its command names no value.

    Parameters
    ----------
    settings
        Fields of `TrainingConfig` that differ from its defaults, which are the paper's.
    fall
        The learning rate of the first layer, divided by that of the last layer. In between the
        rate falls by the same factor from layer to layer.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    fall: float = PAPER_RATIO

    def settings_of(self, hidden_layers: Sequence[int]) -> dict[str, Any]:
        """Fields of `TrainingConfig` for a network with these hidden layers."""
        n_hidden = len(hidden_layers)
        ratio = self.fall ** (1 / n_hidden) if n_hidden else PAPER_RATIO
        return {**self.settings, "learning_rate_ratio": ratio}


RECIPES = {
    "modern": Recipe(
        {
            "learning_rate": 0.01,
            "activation": "relu",
            "loss": "cross-entropy",
            "init": "he",
            "input_range": "unit",
            "decay": "linear",
        }
    ),
    "paper": Recipe(),
    "saturating": Recipe({"target": 1.5}, fall=4.0),
}
"""``modern`` has rectifiers and softmax outputs. ``saturating`` has targets at which the scaled
tanh saturates, and learning rates that fall from layer to layer (docs/recipe.md)."""

DEFAULT_RECIPE = "modern"
"""Of `mlpcore train`."""
