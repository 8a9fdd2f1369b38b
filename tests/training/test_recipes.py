"""Named settings and the configurations they give."""

import pytest

from mlpcore.network.architecture import PRESETS
from mlpcore.training.config import TrainingConfig
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES


@pytest.mark.parametrize("preset", PRESETS)
def test_recipes(preset):
    """The paper's is the default; the other's rates fall by as much at any depth."""
    hidden = PRESETS[preset]
    paper, saturating = RECIPES[DEFAULT_RECIPE], RECIPES["saturating"]
    default = TrainingConfig(hidden_layers=hidden)
    assert paper is RECIPES["paper"]
    assert paper.target == default.target == 1
    assert paper.learning_rate_ratio(len(hidden)) == default.learning_rate_ratio == 1
    ratio = saturating.learning_rate_ratio(len(hidden))
    config = TrainingConfig(hidden, target=saturating.target, learning_rate_ratio=ratio)
    rates = config.learning_rates_at(0)
    assert rates[0] / rates[-1] == pytest.approx(4)
    assert config.target == 1.5


def test_ratios_to_the_bit():
    """For net1 it is what was measured with `--lr-ratio 2`; a single layer has none below."""
    assert RECIPES["saturating"].learning_rate_ratio(len(PRESETS["net1"])) == 2
    assert RECIPES["saturating"].learning_rate_ratio(0) == 1
