"""Settings: the learning rates they give, their way through JSON, and what is refused."""

import math

import numpy as np
import pytest

from mlpcore import DeformationParameters
from mlpcore.store.documents import from_json, to_json
from mlpcore.training.config import CHOICES, Schedule, TrainingConfig, default_learning_rate_end
from small_runs import make_config, refusal


def test_learning_rates_of_layers_and_of_epochs():
    """Linear ones are those of the middles."""
    for hidden, rates in ((9, 9), (0.2, 0.1, 0.05)), ((), (0.1,)):
        config = make_config(hidden_layers=hidden, learning_rate=0.1, learning_rate_ratio=2)
        assert config.learning_rates_after(0, 1) == pytest.approx(rates, rel=1e-15)
    for changes, rates in (
        ({"learning_rate": 1e-3, "learning_rate_end": 1e-6}, (1e-3, 1e-4, 1e-5, 1e-6)),
        ({"learning_rate": 0.8, "decay": "linear"}, (0.7, 0.5, 0.3, 0.1)),
    ):
        found = map(make_config(epochs=4, **changes).learning_rate_at, range(4))
        assert [*found] == pytest.approx(rates, rel=1e-12)


@pytest.mark.parametrize("decay", CHOICES["decay"])
def test_a_warm_up_rises_to_what_the_rate_is_without(decay):
    """And the last rate of the longest training is not 0."""
    make_config(epochs=10**6, decay=decay).learning_rates_after(10**6 * 2.0**31 - 0.5, 2**31)
    config, warm = (make_config(decay=decay, warm_up=n) for n in (0, 150))
    for samples in (1, 75, 149.5, 150, 290):
        expected = min(1, samples / 150) * np.array(config.learning_rates_after(samples, 100))
        assert warm.learning_rates_after(samples, 100) == pytest.approx(expected, rel=1e-15)


def test_default_end_of_the_schedule_is_the_papers():
    ends = {1: 1e-3, 1000: 1e-3 * 10 ** (-3 * 999 / 1999), 2000: 1e-6, 9000: 1e-6}
    for epochs, end in ends.items():
        found = TrainingConfig(epochs=epochs).learning_rate_at(epochs - 1)
        assert [default_learning_rate_end(1e-3, epochs), found] == pytest.approx([end] * 2, 1e-12)


@pytest.mark.parametrize("decay, end", [("factor", None), ("factor", 1e-4), ("linear", None)])
@pytest.mark.parametrize("begun", [0, 3, 6])
def test_another_number_of_epochs(decay, end, begun):
    """Epochs that have begun keep their rates; the others have those of a run of so many."""
    before, whole = (make_config(epochs=n, decay=decay, learning_rate_end=end) for n in (6, 9))
    config = before.with_epochs(9, begun)
    for epoch in range(9):
        expected = (before if epoch < begun else whole).learning_rate_at(epoch, 0.25)
        assert config.learning_rate_at(epoch, 0.25) == expected
    assert (config == whole) is (begun == 0)
    assert from_json(to_json(config), TrainingConfig) == config
    assert before.agrees_with(config, begun) and config.agrees_with(before, begun)
    assert before.agrees_with(config, begun + 1) is False


def test_the_number_of_epochs_changes_again():
    """Only what held for some epoch is kept."""
    before = make_config(epochs=6, decay="linear")
    config = before.with_epochs(9, 4).with_epochs(5, 4)
    assert [(each.until, each.epochs) for each in config.earlier] == [(4, 6)]
    assert config == before.with_epochs(5, 4)
    config = config.with_epochs(20, 5).with_epochs(7, 6)
    assert [(each.until, each.epochs) for each in config.earlier] == [(4, 6), (5, 5), (6, 20)]
    assert config.with_epochs(8, 2).earlier == before.schedules_until(2)
    expected = "epochs 5: expected at least 6, as so many have begun"
    assert expected in refusal(config.with_epochs, 5, 6)


REFUSED = {
    "hidden_layers": [(5, 0), "100"],
    "epochs": [0, 2.0, 10**9],
    "seed": [-1, 2**64],
    "learning_rate": [0.0, math.nan, 1e39, "1e-3"],
    "target": [1e-50, 1.71589999],
    "deformation": [None, *(DeformationParameters(similar_labels=n) for n in ((300,), 7))],
    "warm_up": [-1, 10**13],
    **{name: ["other", ("tanh",)] for name in CHOICES},
    "earlier": [((7, 9, 0.1),), (Schedule(2, 9, None),)],  # unlike linear, factor has an end
}


@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name, values in REFUSED.items() for value in values),
        {"learning_rate_ratio": 1e38, "learning_rate": 1e30},
        {"decay": "linear", "learning_rate_end": 1e-6},
        {"decay": "linear", "epochs": 10**6, "learning_rate": 1e-40},
        {"learning_rate_ratio": 1e9, "hidden_layers": (1,) * 99},
        {"decay": "linear", "earlier": (Schedule(2, 9, 0.1),)},
        *(
            {"decay": "linear", "epochs": 7, "earlier": tuple(Schedule(*n, None) for n in each)}
            for each in ([(4, 3)], [(8, 9)], [(0, 9)], [(2, 9), (2, 9)])
        ),
    ],
    ids=str,
)
def test_settings_that_cannot_be(changes):
    assert "expected" in refusal(make_config, **changes)


def test_settings_survive_json():
    """Of NumPy's types as well."""
    changes = {key: names[-1] for key, names in CHOICES.items()} | {"backend": "\u202e"}
    numbers = np.array([7, 5]), np.int64(3), np.uint64(2**64 - 1), np.float32(0.5)
    changes |= zip(("hidden_layers", "epochs", "seed", "learning_rate"), numbers)
    changed = DeformationParameters(sigma=np.float32(5), similar_labels=np.array([4]))
    config = TrainingConfig(**changes, deformation=changed)
    assert from_json(to_json(config), TrainingConfig) == config
