"""The time of an epoch, measured on a part of the training set."""

from types import SimpleNamespace

import numpy as np
import pytest

from mlpcore import backends
from mlpcore.training import pace
from mlpcore.training.trainer import Trainer
from small_runs import make_config, make_dataset

DATA = make_dataset(n_train=1000, n_test=100)


@pytest.fixture
def measured(monkeypatch):
    """The sets of images that were trained on.

    Each image takes a hundredth of a second in the second epoch, a quarter of it for validation,
    and twice as long in the first.
    """
    sizes = []

    def run(trainer):
        assert np.shares_memory(trainer.source.validation.inputs, DATA.train_images)
        sizes.append((trainer.n_samples, trainer.source.n_test))
        assert trainer.config.epochs == 2
        for share in (50, 100):
            n, n_test = sizes[-1]
            times = {"seconds": n / share, "evaluation_seconds": (n + n_test) / (4 * share)}
            trainer.state.history.append(SimpleNamespace(**times))
        return True

    monkeypatch.setattr(Trainer, "run", run)
    return sizes


@pytest.mark.parametrize(("seconds", "sizes"), [(1, [100]), (99, [100, 200, 400, 800, 1000])])
def test_parts_grow_until_they_take_long_enough(measured, monkeypatch, seconds, sizes):
    monkeypatch.setattr(pace, "MEASURED_SECONDS", seconds)
    config = make_config(epochs=7)
    found = pace.seconds_per_epoch(config, DATA, backends.get())
    assert found == pytest.approx((10, 7.5))
    assert measured == [(n, n // 10) for n in sizes]
