"""What a trainer does with the weights of its samples, and with weight decay."""

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore import backends
from mlpcore.deformation.parameters import IDENTITY
from mlpcore.errors import InputError
from mlpcore.training.sources import ArraySource
from mlpcore.training.trainer import Trainer
from small_runs import (
    BACKENDS,
    DATA,
    FLAT,
    make_config,
    same_weights,
)

#: As many people write them: whole numbers.
WEIGHTS = (np.arange(230) % 4).tolist()


def train(config, backend, weights, state=None):
    source = ArraySource.of(DATA, config, backend, weights)
    trainer = Trainer(config, source, backend, state=state, weight_decay=0.5)
    assert trainer.run()
    return trainer.state


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "cuda"])
def test_weights_reach_the_backend_and_the_loss_is_the_weighted_mean(name):
    backend = backends.get(name)
    config = make_config(epochs=1, deformation=IDENTITY)
    state = train(config, backend, WEIGHTS)
    network, weights = config.new_network((35, 9, 6, 3)), np.array(WEIGHTS, np.float32)
    order, rates = backend.permutation(230, 5, 0), config.learning_rates_after(115, 230)
    arguments = network, FLAT, DATA.train_labels, order, rates
    result = backend.train(*arguments, sample_weight=weights, weight_decay=0.5)
    assert same_weights(state.network, network)
    assert state.history[0].loss == pytest.approx(result.loss / weights.sum(), rel=1e-5)
    assert state.history[0].training_errors == result.errors


@pytest.mark.parametrize(
    "weights, message",
    [
        (-np.ones(230), r"^sample_weight -1 of sample 0: expected 0 or more, and finite$"),
        (np.full(230, 1e300), r"^sample_weight inf of sample 0: expected 0 or more"),
        (np.zeros(230), r"^sample_weight: 0 everywhere, expected a greater one$"),
        ([1, 2], r"^sample_weight: float32 of shape \(2,\), expected float32 of shape \(230\)$"),
        (["a"] * 230, r"^sample_weight: <U1 of shape \(230,\), expected float32"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        ArraySource.of(DATA, make_config(), backends.get(), weights)


@needs_emulation
def test_a_backend_without_weights_and_decay_says_so():
    backend, config = emulated_backend("streaming"), make_config()
    loaded = backend.load(config.new_network((35, 9, 6, 3)))
    samples = FLAT, DATA.train_labels, np.zeros(1, np.int32), 0.1
    for name, value, refused in (
        ("sample_weight", np.ones(230, np.float32), lambda value: train(config, backend, value)),
        ("weight_decay", 0.1, lambda value: Trainer(config, DATA, backend, weight_decay=value)),
    ):
        with pytest.raises(InputError, match=f"^{name}: the backend .* takes none, expected a CPU"):
            refused(value)
        with pytest.raises(InputError, match=f"^{name}: the backend .* takes none"):
            backend.train(loaded, *samples, **{name: value})
