"""The training loop: epochs, refusals, interrupts, and what it does with a backend's answers."""

import dataclasses
import itertools
import math
import sys

import numpy as np
import pytest

from emulated import emulated_backend, needs_emulation
from mlpcore import DeformationParameters, InputError, Network, backends, deformation, philox
from mlpcore.data.pixels import PixelSpec
from mlpcore.deformation.values import background_of
from mlpcore.training import sources
from mlpcore.training.sources import ArraySource
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import DATA, MODERN, Hook, assert_same_result, make_config, same_weights, train

#: Light paper stays light: what comes in from outside of an image has the colour of its border.
LIGHT = dataclasses.replace(
    DATA, train_pixels=np.pad(~DATA.train_pixels[:, 1:-1, 1:-1], ((0, 0), (1, 1), (1, 1)), "edge")
)

#: Pictures with even sides, which images lack; and such as real numbers.
EVEN = dataclasses.replace(
    DATA,
    train_pixels=DATA.train_pixels[:, 1:, 1:].copy(),
    test_pixels=DATA.test_pixels[:, 1:, 1:].copy(),
    pixels=PixelSpec((7, 5), (6, 4)),
)
REAL = dataclasses.replace(
    EVEN,
    train_pixels=EVEN.train_pixels / 255,
    test_pixels=EVEN.test_pixels / 255,
    pixels=PixelSpec((7, 5), (6, 4), (0.0, 1.0), whole=False),
)

NONE = DeformationParameters(6, 0, 0, 0)

KINDS = {
    "paper": (DATA, {}, None, 0.0),
    "modern": (DATA, {**MODERN, "warm_up": 100, "learning_rate_ratio": 2}, None, 0.0),
    "weights and decay": (LIGHT, {"target": 1.3}, (np.arange(230) % 4).tolist(), 0.5),
    "even sides": (EVEN, MODERN, None, 0.0),
    "real numbers": (REAL, MODERN, None, 0.0),
    "real numbers as they are": (REAL, {"deformation": NONE}, None, 0.0),
    "as they are": (EVEN, {**MODERN, "deformation": NONE}, None, 0.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_is_deformation_order_training_and_counting(kind, backend, monkeypatch, capsys):
    """Each segment has the rates of its middle; the place in the epoch decides on a deformation."""
    monkeypatch.setattr(sources, "SEGMENT", 64)
    events = []
    hook = Hook(lambda trainer, *arguments: events.append(arguments[:2]))
    data, changes, weights, decay = KINDS[kind]
    if not backend.can_weight:
        weights, decay = None, 0.0
    config = make_config(epochs=2, **changes)
    source = ArraySource.of(data, config, backend, weights)
    trainer = Trainer(config, source, backend, [hook], weight_decay=decay)
    for until in (0, 1, 3):  # of two
        assert trainer.run(until) and trainer.state.epoch == min(until, 2)
    kinds = [kind for kind, _ in itertools.groupby(event[0] for event in events)]
    assert kinds == 2 * ["epoch_start", "training", "evaluating", "epoch_end"]
    assert {("training", 64), ("training", 192), ("evaluating", 230)} <= set(events)
    network = Network((35, 9, 6, 3), 5, config.activation, config.loss, config.init)
    weights = None if weights is None else backend.put(np.array(weights, np.float32))
    loaded, inputs = backend.load(network), data.as_inputs(config.input_range)
    total = 230 if weights is None else np.sum(weights)
    for epoch, metrics in enumerate(trainer.state.history):
        order, results = philox.permutation(230, 5, epoch), []
        labels, shown = DATA.train_labels[order], inputs.train_images[order]
        drawn = weights if weights is None else backend.put(np.asarray(weights)[order])
        if not config.deformation.is_identity:
            around, pixels = background_of(inputs.train_images), None
            if data is not REAL:
                shown, pixels = data.train_pixels[order], inputs.pixels
                around = float(pixels.inputs_of_bytes[int(background_of(data.train_pixels))])
            arguments = config.deformation, 5, epoch, backend, 0, None, None, around, pixels
            shown = deformation.deform(backend.put(shown), backend.put(labels), *arguments)
            shown = np.asarray(shown)
        for begin, end in ((0, 64), (64, 128), (128, 192), (192, 230)):
            rates = config.learning_rates_after(230 * epoch + (begin + end) / 2, 230)
            samples = shown.reshape(-1, 35), labels, np.arange(begin, end, dtype=np.int32)
            more = (None, config.target, drawn, decay)
            results.append(backend.train(loaded, *samples, rates, *more))
        parts = metrics.deformation_seconds, metrics.training_seconds, metrics.evaluation_seconds
        assert min(parts) >= 0 and metrics.seconds == pytest.approx(sum(parts))
        assert metrics.epoch == epoch + 1
        assert metrics.learning_rate == config.learning_rate_at(epoch)
        assert metrics.training_errors == sum(result.errors for result in results)
        assert metrics.test_error == 100 * metrics.test_errors / 60
        assert metrics.loss == pytest.approx(sum(r.loss for r in results) / total, rel=1e-5)
        sets = [(inputs.train_images, DATA.train_labels), (inputs.test_images, DATA.test_labels)]
        errors = [backend.count_errors(loaded, x.reshape(-1, 35), y) for x, y in sets]
        assert [metrics.validation_errors, metrics.test_errors] == errors
    backend.store(loaded, network)
    assert same_weights(trainer.state.network, network)
    assert capsys.readouterr() == ("", "")


def test_segments_of_large_images_are_shorter_and_change_no_bit(monkeypatch):
    backend = backends.get(threads=1)
    whole = train(make_config(), backend)
    monkeypatch.setattr(sources, "ROOM", 1)
    assert ArraySource.of(DATA, make_config(), backend).room == 64
    assert_same_result(whole, train(make_config(), backend))


def new(data=DATA, network=None, weights=None, weight_decay=0.0, backend=None, **changes):
    """A call that makes a trainer."""
    state = None if network is None else TrainingState(network)

    def call():
        used, config = backend or backends.get(), make_config(**changes)
        source = ArraySource.of(data, config, used, weights)
        return Trainer(config, source, used, state=state, weight_decay=weight_decay)

    return call


REFUSED = [
    (new(network=Network((35, 9, 3))), r"35, 9, 3.*expected \(35, 9, 6, 3\)"),
    (new(network=Network((35, 9, 6, 3), None, "relu")), "relu.*expected .*, tanh, squared"),
    (new(network=Network((35, 9, 6, 3), loss="cross-entropy")), "entropy.*expected .*, squared"),
    (new(dataclasses.replace(DATA, classes=(0, 1))), "^train labels: from 0 to 2, expected 0 to 1"),
    (new(ones_and_sevens=0.5), "expected"),
    (new(learning_rate=1e-43, decay="linear"), "learning rate of a layer"),  # within an epoch
    (new(weight_decay="linear"), "^weight_decay 'linear': expected"),
    (new(weights=np.zeros(230)), "^sample_weight: all are 0, expected"),
    (new(weights=np.full(230, 1e300)), "^sample_weight inf of sample 0"),
    (new(weights=np.ones(9)), r"sample_weight.*\(9,\)"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_trained(call, words, monkeypatch):
    monkeypatch.setattr(sources, "SEGMENT", 2)
    with pytest.raises(InputError, match=words):
        call()


@needs_emulation
def test_a_backend_without_weights_and_decay_says_so():
    backend = emulated_backend("streaming")
    for settings in ({"weights": np.ones(230, np.float32)}, {"weight_decay": 0.1}):
        with pytest.raises(InputError, match=r"the backend .* takes none, expected a CPU"):
            new(backend=backend, **settings)()
    samples = DATA.train_images.reshape(-1, 35), DATA.train_labels, np.zeros(1, np.int32)
    with pytest.raises(InputError, match=r"^weight_decay: the backend .* takes none"):
        backend.train(backend.load(Network((35, 9, 3))), *samples, 0.1, weight_decay=0.1)


LOOP = ("_run_epoch", "_metrics", "_train", "_on_samples", "_collect", "_store", "_count_errors")
PARTS = [*(getattr(Trainer, name) for name in LOOP), ArraySource.begin, ArraySource.segment]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_an_interrupt_before_any_line_loses_nothing(part):
    """Before each line once, in the second epoch. Interrupts within a line are not tested."""
    code = part.__code__
    lines = sorted({line for *_, line in code.co_lines() if line} - {code.co_firstlineno})
    config, backend, interrupted = make_config(epochs=2), backends.get(threads=1), []
    whole = train(config, backend)
    for wanted in lines:
        trainer = Trainer(config, DATA, backend)

        def trace(frame, event, argument, wanted=wanted, trainer=trainer):
            if frame.f_code is not code:
                return None
            if event == "line" and frame.f_lineno == wanted and trainer.state.epoch:
                interrupted.append(wanted)
                raise KeyboardInterrupt  # which ends the tracing
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            trainer.run()
        except KeyboardInterrupt:
            trainer.run()
        finally:
            sys.settrace(before)
        assert_same_result(whole, trainer.state)
    assert interrupted


class Scripted:
    """A backend with scripted error counts, whose training adds 1 to a bias.

    With a loss, it has that and leaves a NaN in the weights in the second epoch.
    """

    def __init__(self, counts=None, loss=None):
        self.counts, self.loss, self.calls = iter(counts or itertools.repeat(9)), loss, []
        self.inner = backends.get("cpu")

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def train(self, network, images, labels, order, learning_rate, progress=None, *rest):
        self.calls.append(len(order))
        network.biases[0][0] = len(self.calls)
        result = backends.TrainingResult(len(order), 0, 1.0)
        progress(result)
        if self.loss is None or sum(self.calls) <= 230:
            return result
        network.weights[1][0, 0] = math.nan
        return dataclasses.replace(result, loss=self.loss)

    def count_errors(self, network, images, labels, poll=None):
        poll()
        return next(self.counts)


def test_the_last_of_the_lowest_validation_errors_wins():
    state = train(make_config(epochs=5), Scripted([9, 9, 4, 1, 7, 2, 4, 3, 5, 6]))
    assert state.best_metrics.epoch == state.best.biases[0][0] == 4
    assert state.best_metrics.test_errors == 3
    assert state.network.biases[0][0] == 5
    assert state.best_test_metrics.test_errors == 1


def test_a_rate_that_falls_to_0_needs_few_validations(monkeypatch):
    """Of seven epochs the first, the last and one in between, and each one's test images."""
    monkeypatch.setattr("mlpcore.training.config.MILESTONES", 2)
    backend = Scripted([9, 5, 6, 7, 5, 4, 8, 3, 2, 1])
    state = train(make_config(epochs=7, decay="linear"), backend)
    errors = [(each.validation_errors, each.test_errors) for each in state.history]
    assert errors == [(9, 5), (None, 6), (None, 7), (5, 4), (None, 8), (None, 3), (2, 1)]
    assert state.best_metrics.epoch == state.best.biases[0][0] == 7
    assert [math.isnan(each.validation_error) for each in state.history][2:4] == [True, False]
    assert all(map(make_config(epochs=7).validates, range(1, 8)))  # its rate does not fall to 0


def test_ones_and_sevens_get_strokes_before_they_are_deformed():
    """The strokes are those of the seed, in all epochs and in validation, but not in the test."""
    digits, backend = dataclasses.replace(DATA, classes=(1, 5, 7)), backends.get("scalar", 1)
    drawn = Trainer(make_config(ones_and_sevens=0.5), digits, backend)
    strokes = digits.with_strokes(0.5, 5)
    assert np.array_equal(strokes.hold_out(30).train_images, strokes.train_images[:-30])
    unit = strokes.as_inputs("unit").train_images
    assert np.array_equal(unit, (strokes.train_images + np.float32(1)) / np.float32(2))
    expected = Trainer(make_config(), strokes, backend)
    assert drawn.run() and expected.run()
    assert_same_result(drawn.state, expected.state)
    without = train(make_config(), backend)
    assert not same_weights(drawn.state.network, without.network)


@pytest.mark.parametrize(
    ("loss", "cause", "samples"),
    [(1.0, "a weight", [64, 64, 64, 38] * 2), (math.nan, "the loss", [64, 64, 64, 38, 64])],
)
def test_what_is_not_finite_stops_training_and_is_not_kept(monkeypatch, loss, cause, samples):
    """A loss within the epoch, a weight at its end, even where a stop is asked for."""
    monkeypatch.setattr(sources, "SEGMENT", 64)
    events, backend = [], Scripted(loss=loss)

    def note(trainer, event, done=0, *rest):
        events.append(event)
        if event == "training" and done == 230 and trainer.state.epoch == 1:
            trainer.request_stop()

    with pytest.raises(Diverged, match=rf"epoch 2 at learning rate 0\.01: {cause}"):
        train(make_config(learning_rate_end=0.01), backend, [Hook(note)])
    assert events.count("epoch_end") == 1
    assert "stop" not in events
    assert backend.calls == samples
