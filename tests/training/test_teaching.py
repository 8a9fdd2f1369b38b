"""What a trainer does with a teacher: its answers are asked for, mixed, timed, and checked."""

import time

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore import backends
from mlpcore.deformation.parameters import IDENTITY
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training.teaching import PART, Teaching
from mlpcore.training.trainer import Trainer
from small_runs import (
    DATA,
    FLAT,
    assert_same_result,
    make_config,
    make_dataset,
    run_with_stop,
    same_weights,
)

SHA256 = "0123456789abcdef" * 4


class Fake:
    """A teacher whose answers depend on what it is shown, and on the epoch."""

    def __init__(self, sha256=SHA256):
        self.sha256, self.seen = sha256, []

    def prepare(self, config, dataset):
        self.prepared = config, dataset

    def probabilities(self, part, images, epoch):
        self.seen.append((epoch, part.start, part.stop))
        time.sleep(0.001)
        powers = np.exp(images.reshape(len(images), -1)[:, :3].astype(float) + epoch)
        return powers / powers.sum(axis=1, keepdims=True)


def config_with(weight=0.7, **changes):
    return make_config(teacher=Teaching(("a",), SHA256, weight), **changes)


def train(config, backend, data=DATA, state=None):
    trainer = Trainer(config, data, backend, state=state, teacher=Fake())
    assert trainer.run()
    return trainer.state


def test_answers_and_labels_are_mixed_by_the_weight():
    config, backend = config_with(0.7, epochs=1, deformation=IDENTITY), backends.get("scalar", 1)
    state = train(config, backend)
    answers = Fake().probabilities(slice(0, 230), DATA.train_images, 0)
    soft = (0.7 * answers + 0.3 * np.eye(3)[DATA.train_labels]).astype(np.float32)
    network = config.new_network((35, 9, 6, 3))
    order, rates = backend.permutation(230, 5, 0), config.learning_rates_after(115, 230)
    arguments = network, FLAT, DATA.train_labels, order, rates
    result = backend.train(*arguments, soft_targets=soft)
    assert same_weights(state.network, network)
    assert state.history[0].loss == pytest.approx(result.loss / 230, rel=1e-5)
    assert state.history[0].training_errors == result.errors


def test_a_teacher_sees_the_deformed_images_of_every_epoch_in_parts():
    data = make_dataset(n_train=PART + 10)
    config, teacher = config_with(epochs=2), Fake()
    trainer = Trainer(config, data, backends.get("scalar", 1), teacher=teacher)
    assert trainer.run()
    parts = (0, PART), (PART, PART + 10)
    assert teacher.seen == [(epoch, *part) for epoch in range(2) for part in parts]
    assert teacher.prepared == (config, data)
    plain = train(config_with(epochs=2, deformation=IDENTITY), backends.get("scalar", 1), data)
    assert not same_weights(plain.network, trainer.state.network)


def test_the_teachers_time_is_counted():
    state = train(config_with(), backends.get())
    for metrics in state.history:
        parts = metrics.deformation_seconds, metrics.training_seconds, metrics.evaluation_seconds
        assert metrics.teacher_seconds >= 0.001
        assert metrics.seconds == pytest.approx(sum(parts) + metrics.teacher_seconds)
    taught = sum(metrics.teacher_seconds for metrics in state.history)
    assert state.teacher_share == pytest.approx(taught / state.seconds)


def test_a_run_continues_with_the_same_answers():
    config, backend = config_with(epochs=2), backends.get("scalar")
    stopping = run_with_stop(config, DATA, backend, 1, 128, teacher=Fake())
    assert_same_result(train(config, backend, state=stopping.state), train(config, backend))


def test_a_finished_run_needs_no_teacher():
    config, backend = config_with(epochs=1), backends.get()
    state = train(config, backend)
    assert Trainer(config, DATA, backend, state=state).run()


@pytest.mark.parametrize(
    "config, teacher, message",
    [
        (config_with(), None, "^teacher: there is none, expected one in the settings and"),
        (make_config(), Fake(), "^teacher: the settings name none, expected one in the settings"),
        (config_with(), Fake("f" * 64), r"^teacher a: expected .* 0123456789ab\.\.\., found ffff"),
    ],
)
def test_another_teacher_than_that_of_the_settings_is_refused(config, teacher, message):
    with pytest.raises(InputError, match=message):
        Trainer(config, DATA, backends.get(), teacher=teacher)


@needs_emulation
def test_a_backend_that_takes_no_teacher_says_so():
    backend = emulated_backend("streaming")
    with pytest.raises(InputError, match=r"^teacher: the backend .* expected a CPU backend$"):
        Trainer(config_with(), DATA, backend, teacher=Fake())
    loaded, soft = backend.load(Network((35, 3))), np.ones((230, 3), np.float32) / 3
    order = np.zeros(1, np.int32)
    with pytest.raises(InputError, match=r"^soft_targets: the CUDA backend takes none"):
        backend.train(loaded, FLAT, DATA.train_labels, order, 0.1, soft_targets=soft)


@pytest.mark.parametrize(
    "values, message",
    [
        ((("a",), SHA256, 0), "^teacher weight 0: expected more than 0, at most 1$"),
        ((("a",), SHA256, 1.1), "^teacher weight 1.1: expected"),
        ((("a",), SHA256, float("nan")), "^teacher weight nan: expected"),
        ((("a",), SHA256, "1"), "^teacher weight '1': expected a number$"),
        ((("a",), SHA256[1:]), "^SHA-256 of a teacher .*: expected 64 digits$"),
        ((("a",), None), "^SHA-256 of a teacher None: expected 64 digits$"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(InputError, match=message):
        Teaching(*values)


def test_settings_that_are_no_teacher():
    with pytest.raises(InputError, match=r"^teacher 'a': expected a `Teaching` or None$"):
        make_config(teacher="a")
