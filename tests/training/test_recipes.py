"""Named settings and what they make of a configuration."""

import pytest

from mlpcore.network.architecture import PRESETS
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES


@pytest.mark.parametrize("preset", PRESETS)
def test_the_papers_recipe_is_the_default_settings(preset):
    paper = RECIPES[DEFAULT_RECIPE]
    assert DEFAULT_RECIPE == "paper"
    config = TrainingConfig(hidden_layers=PRESETS[preset])
    assert paper.target == config.target == 1
    assert paper.learning_rate_ratio(len(PRESETS[preset])) == config.learning_rate_ratio == 1


@pytest.mark.parametrize("preset", PRESETS)
def test_rates_fall_by_as_much_whatever_the_depth(preset):
    recipe, hidden = RECIPES["saturating"], PRESETS[preset]
    config = TrainingConfig(
        hidden_layers=hidden,
        target=recipe.target,
        learning_rate_ratio=recipe.learning_rate_ratio(len(hidden)),
    )
    rates = config.learning_rates_at(0)
    assert rates[0] / rates[-1] == pytest.approx(4)
    assert config.target == 1.5


def test_a_single_layer_has_nothing_to_fall_to():
    assert RECIPES["saturating"].learning_rate_ratio(0) == 1


def test_net1_is_what_was_measured():
    """`--target 1.5 --lr-ratio 2`, to the bit."""
    assert RECIPES["saturating"].learning_rate_ratio(len(PRESETS["net1"])) == 2
