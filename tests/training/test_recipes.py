"""Named settings and the configurations they give."""

import pytest

from mlpcore.network.architecture import PRESETS
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES


def config_of(recipe, hidden):
    return TrainingConfig(hidden, **RECIPES[recipe].settings_of(hidden))


@pytest.mark.parametrize("preset", PRESETS)
def test_recipes(preset):
    """The paper's is that of the settings themselves; the rates of another fall at any depth."""
    hidden = PRESETS[preset]
    assert config_of("paper", hidden) == TrainingConfig(hidden)
    saturating = config_of("saturating", hidden)
    rates = saturating.learning_rates_after(0, 1)
    assert rates[0] / rates[-1] == pytest.approx(4)
    if preset == "net1":
        assert saturating.learning_rate_ratio == 2  # to the bit, as it was measured
        assert config_of("saturating", ()).learning_rate_ratio == 1
    assert saturating.target == 1.5
    assert config_of(DEFAULT_RECIPE, hidden) == TrainingConfig(
        hidden, learning_rate=0.01, activation="relu", loss="cross-entropy", init="he",
        input_range="unit", decay="linear",
    )  # fmt: skip
