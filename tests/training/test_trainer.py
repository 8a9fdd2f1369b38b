"""The training loop: what an epoch computes, the best network, stop and resume, divergence."""

import copy
import dataclasses
import math
import sys

import numpy as np
import pytest

from emulated import BACKENDS, get_backend
from mlpcore import backends, deformation, philox
from mlpcore.deformation.parameters import IDENTITY
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training import trainer as training
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Diverged, Trainer
from small_runs import (
    C_BACKENDS,
    Hook,
    assert_same_result,
    make_config,
    make_dataset,
    run_with_stop,
    same_weights,
)

DATA = make_dataset()
FLAT, FLAT_TEST = DATA.train_images.reshape(-1, 35), DATA.test_images.reshape(-1, 35)


MODERN = {
    "activation": "relu",
    "loss": "cross-entropy",
    "init": "he",
    "input_range": "unit",
    "decay": "linear",
}


def train(config, backend, observers=(), state=None):
    trainer = Trainer(config, DATA, backend, observers, state)
    assert trainer.run() is True
    return trainer.state


@pytest.fixture(params=BACKENDS)
def backend(request):
    return get_backend(request.param, threads=2)


@pytest.fixture(params=C_BACKENDS)
def c_backend(request):
    return get_backend(request.param, threads=2)


# What an epoch is


def test_an_epoch_is_deformation_order_training_and_counting(backend, capsys):
    config = make_config(epochs=2)
    state = train(config, backend)
    network = Network((35, 9, 6, 3), config.seed)
    loaded = backend.load(network)
    for epoch, metrics in enumerate(state.history):
        shown = deformation.deform(
            DATA.train_images, DATA.train_labels, config.deformation, 5, epoch, backend
        )
        order = philox.permutation(230, 5, epoch)
        rate = config.learning_rate_at(epoch)
        result = backend.train(loaded, shown.reshape(-1, 35), DATA.train_labels, order, rate)
        parts = metrics.deformation_seconds, metrics.training_seconds, metrics.evaluation_seconds
        assert min(parts) >= 0 and metrics.seconds == sum(parts)
        assert metrics.epoch == epoch + 1
        assert metrics.learning_rate == rate
        assert metrics.training_errors == result.errors
        assert metrics.test_error == 100 * metrics.test_errors / 60
        assert metrics.loss == pytest.approx(result.loss / 230, rel=1e-5)
        assert metrics.validation_errors == backend.count_errors(loaded, FLAT, DATA.train_labels)
        assert metrics.test_errors == backend.count_errors(loaded, FLAT_TEST, DATA.test_labels)
    backend.store(loaded, network)
    assert same_weights(state.network, network)
    assert capsys.readouterr() == ("", "")


def test_identity_trains_on_the_images_themselves(monkeypatch):
    monkeypatch.setattr(deformation, "deform", None)
    backend, network = backends.get("cpu"), Network((35, 9, 6, 3), 5)
    state = train(make_config(epochs=1, deformation=IDENTITY), backend)
    backend.train(network, FLAT, DATA.train_labels, philox.permutation(230, 5, 0), 0.01)
    assert same_weights(state.network, network)


@pytest.mark.parametrize("name", C_BACKENDS)
def test_same_bits_for_any_number_of_threads(name):
    config = make_config(hidden_layers=(70, 40), epochs=2)
    one, two, three = (train(config, get_backend(name, threads)) for threads in (1, 2, 3))
    assert_same_result(one, two)
    assert_same_result(one, three)


def test_same_bits_however_an_epoch_is_cut(c_backend, monkeypatch):
    whole = train(make_config(), c_backend)
    monkeypatch.setattr(training, "SEGMENT", 64)
    monkeypatch.setattr(training, "PART_SECONDS", 0)  # always the smallest part
    parts = []
    hook = Hook(lambda trainer, *arguments: parts.append(arguments[:2]))
    assert_same_result(whole, train(make_config(), c_backend, [hook]))
    assert {("deforming", 100), ("training", 64), ("evaluating", 230)} <= set(parts)


def test_parts_of_the_deformation_grow_when_quick(monkeypatch):
    monkeypatch.setattr(training, "PART_SECONDS", math.inf)
    events = []
    hook = Hook(lambda trainer, *arguments: events.append(arguments[:2]))
    train(make_config(epochs=2), backends.get(), [hook])
    assert [event[1] for event in events if event[0] == "deforming"] == [0, 100, 0]


def test_observers_are_told_in_order():
    events = []

    def note(trainer, event, *arguments):
        if not events or events[-1] != event:
            events.append(event)

    train(make_config(epochs=2), backends.get(), [Hook(note)])
    assert events == 2 * ["epoch_start", "deforming", "training", "evaluating", "epoch_end"]


def test_networks_and_labels_that_do_not_fit():
    with pytest.raises(InputError, match=r"35, 9, 3.*expected \(35, 9, 6, 3\)"):
        Trainer(make_config(), DATA, backends.get(), state=TrainingState(Network((35, 9, 3))))
    data = dataclasses.replace(DATA, n_classes=DATA.n_classes - 1)
    for name, value in (("activation", "relu"), ("loss", "cross-entropy")):
        network = Network((35, 9, 6, 3), **{name: value})
        with pytest.raises(InputError, match=f"{value}.*expected .*, tanh, squared"):
            Trainer(make_config(), DATA, backends.get(), state=TrainingState(network))
    with pytest.raises(InputError, match="train labels: from 0 to 2, expected 0 to 1"):
        Trainer(make_config(), data, backends.get())


def test_a_rate_that_would_be_0(monkeypatch):
    monkeypatch.setattr(training, "SEGMENT", 2)
    with pytest.raises(InputError, match="learning rate of a layer"):
        Trainer(make_config(learning_rate=1e-43, decay="cosine"), DATA, backends.get())


# What a trainer does with a backend's answers


class Scripted:
    """A backend with scripted error counts, whose training adds 1 to a bias."""

    def __init__(self, validation=(9, 9, 9), test=(9, 9, 9)):
        self.counts = iter([count for pair in zip(validation, test) for count in pair])
        self.calls = []
        self.inner = backends.get("cpu")

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def train(self, network, images, labels, order, learning_rate, progress=None, *rest):
        self.calls.append((len(order), learning_rate, rest))
        network.biases[0][0] = len(self.calls)
        result = backends.TrainingResult(len(order), 0, 1.0)
        progress(result)
        return result

    def count_errors(self, network, images, labels, poll=None):
        poll()
        return next(self.counts)


class Poisoned(Scripted):
    """A backend whose training leaves a NaN in the weights in the second epoch."""

    loss = 1.0

    def train(self, network, *arguments):
        result = super().train(network, *arguments)
        if sum(samples for samples, *_ in self.calls) <= 230:
            return result
        network.weights[1][0, 0] = math.nan
        return dataclasses.replace(result, loss=self.loss)


@pytest.mark.parametrize(
    ("validation", "test", "best"),
    [((9, 4, 7, 4, 5), (9, 3, 2, 1, 6), 2), ((9, 4, 3), (1, 2, 3), 3)],
)
def test_the_first_of_the_lowest_validation_errors_wins(validation, test, best):
    state = train(make_config(epochs=len(test)), Scripted(validation, test))
    assert state.best_metrics.epoch == state.best.biases[0][0] == best
    assert state.best_metrics.test_errors == test[best - 1]
    assert state.network.biases[0][0] == len(test)
    assert state.best_test_error == 100 * 1 / 60


def test_a_count_reports_and_asks_whether_to_stop():
    reports = []

    def note(trainer, event, *numbers):
        if event == "evaluating":
            reports.append(numbers)

    train(make_config(epochs=1), Scripted(), [Hook(note)])
    assert reports == [(0, 290), (0, 290), (230, 290), (230, 290)]


def test_samples_below_a_fraction_of_the_last_loss_are_skipped():
    scripted = Scripted()
    train(make_config(epochs=2, skip=0.25), scripted)
    (*_, first), (*_, second) = scripted.calls
    # The scripted loss of 230 samples is 1, and six digits of its mean are kept.
    assert first[1] == 0
    assert second[1] == pytest.approx(0.25 / 230, rel=1e-5)


def test_rates_of_layers_and_the_target_reach_the_backend():
    scripted = Scripted()
    config = make_config(epochs=2, learning_rate_ratio=2, target=1.3)
    train(config, scripted)
    rates = [config.learning_rates_after(samples, 230) for samples in (115, 345)]
    assert scripted.calls == [(230, each, (1.3, 0.0)) for each in rates]


def test_each_segment_has_the_rate_of_its_middle(monkeypatch):
    monkeypatch.setattr(training, "SEGMENT", 64)
    scripted, config = Scripted(), make_config(epochs=2, decay="linear", warm_up=100)
    history = train(config, scripted).history
    middles = [32, 96, 160, 211, 262, 326, 390, 441]
    assert [rates for _, rates, _ in scripted.calls] == [
        config.learning_rates_after(middle, 230) for middle in middles
    ]
    assert [m.learning_rate for m in history] == [config.learning_rate_at(0), pytest.approx(0.0025)]


def test_names_of_the_settings_reach_the_network_and_its_inputs(monkeypatch):
    monkeypatch.setattr(training, "SEGMENT", 100)
    config = make_config(epochs=1, deformation=IDENTITY, learning_rate=0.05, **MODERN)
    state = train(config, backends.get("reference"))
    network = Network((35, 9, 6, 3), 5, "relu", "cross-entropy", "he")
    inputs, order, backend = (
        (FLAT + 1) / 2,
        philox.permutation(230, 5, 0),
        backends.get("reference"),
    )
    for begin, share in ((0, 1 - 50 / 230), (100, 1 - 150 / 230), (200, 1 - 215 / 230)):
        part = order[begin : begin + 100]
        backend.train(network, inputs, DATA.train_labels, part, 0.05 * share)
    for a, b in zip(network.weights, state.network.weights):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)  # the rates' and the inputs' bits
    assert (state.best.activation, state.best.loss) == ("relu", "cross-entropy")
    errors = backend.count_errors(network, (FLAT_TEST + 1) / 2, DATA.test_labels)
    assert state.history[0].test_errors == errors


def test_divergence_names_epoch_and_learning_rate(backend):
    config = make_config(learning_rate=3e38, learning_rate_end=3e38)
    with np.errstate(all="ignore"), pytest.raises(Diverged) as caught:
        train(config, backend)
    assert "epoch 1 at learning rate 3e+38" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_finite_stop_training():
    events = []
    hook = Hook(lambda trainer, event, *rest: events.append(event))
    with pytest.raises(Diverged, match=r"epoch 2 at learning rate 0\.01: a weight"):
        train(make_config(learning_rate_end=0.01), Poisoned(), [hook])
    assert events.count("epoch_end") == 1
    assert "stop" not in events


def test_a_loss_that_is_not_finite_stops_within_the_epoch(monkeypatch):
    monkeypatch.setattr(training, "SEGMENT", 64)
    backend = Poisoned()
    backend.loss = math.nan
    with pytest.raises(Diverged, match=r"epoch 2 .* the loss"):
        train(make_config(), backend)
    assert [samples for samples, *_ in backend.calls] == [64, 64, 64, 38, 64]


def test_a_stop_does_not_keep_weights_that_are_not_finite():
    def stop(trainer, event, done=0, *rest):
        if event == "training" and done == 230 and trainer.state.epoch == 1:
            trainer.request_stop()

    with pytest.raises(Diverged, match="a weight"):
        Trainer(make_config(), DATA, Poisoned(), [Hook(stop)]).run()


# Stop and resume


@pytest.mark.parametrize(("epoch", "samples"), [(0, 0), (0, 224), (1, 0), (1, 96), (2, 32)])
def test_resume_equals_uninterrupted(c_backend, epoch, samples):
    """By another trainer, and by the same one."""
    config = make_config()
    whole = train(config, c_backend)
    stopped = run_with_stop(config, DATA, c_backend, epoch, samples)
    seconds = stopped.state.seconds
    assert_same_result(whole, train(config, c_backend, state=copy.deepcopy(stopped.state)))
    assert stopped.run() is True
    assert_same_result(whole, stopped.state)
    assert seconds < stopped.state.seconds == sum(m.seconds for m in stopped.state.history)


@pytest.mark.parametrize(("samples", "decay"), [(32, "linear"), (96, "cosine"), (224, "linear")])
def test_rates_that_change_within_an_epoch_survive_a_stop(c_backend, monkeypatch, samples, decay):
    """Within the first segments and within the last."""
    monkeypatch.setattr(training, "SEGMENT", 64)
    config = make_config(decay=decay, warm_up=300)
    whole = train(config, c_backend)
    stopped = run_with_stop(config, DATA, c_backend, 1, samples)
    assert_same_result(whole, train(config, c_backend, state=stopped.state))


@pytest.mark.parametrize(
    ("name", "schedule", "samples", "rounding"),
    [("cpu", "immediate", 17, 0), ("reference", None, 0, 0), ("reference", None, 100, 1e-5)],
)
def test_other_backends_resume(name, schedule, samples, rounding):
    """The reference keeps float32 of its float64 when it stops within an epoch."""
    config, backend = make_config(), backends.get(name, schedule=schedule)
    stopped = run_with_stop(config, DATA, backend, 1, samples)
    whole, resumed = train(config, backend), train(config, backend, state=stopped.state)
    for a, b in zip(whole.network.weights, resumed.network.weights):
        np.testing.assert_allclose(a, b, rtol=rounding, atol=rounding / 10)


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("phase", ["epoch_start", "deforming", "training", "evaluating"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_stop_or_an_exception_in_any_phase_loses_nothing(c_backend, phase, at, raises):
    """At the first or second report of a phase; Ctrl-C in a notebook, for example, raises."""
    config, seen, stops = make_config(), [], []

    def interrupt(trainer, event, *numbers):
        if event == "stop":
            stops.append(trainer.state.progress.samples)
        elif event == phase:
            seen.append(event)
            if len(seen) == at + 1 and raises:
                raise KeyboardInterrupt
            if len(seen) == at + 1:
                trainer.request_stop()

    trainer = Trainer(config, DATA, c_backend, [Hook(interrupt)])
    if raises:
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    else:
        assert trainer.run() is False
        assert stops == [trainer.state.progress.samples]
    if phase == "training" and at == 1:
        assert 0 < trainer.state.progress.samples < 230 or raises
    elif phase == "evaluating":
        assert trainer.state.progress.samples == 230
    rest = Trainer(config, DATA, c_backend, state=copy.deepcopy(trainer.state))
    assert trainer.run() and rest.run()
    whole = train(config, c_backend)
    assert_same_result(whole, trainer.state)
    assert_same_result(whole, rest.state)


def test_a_stop_requested_before_the_run_stops_it_at_once():
    trainer = Trainer(make_config(), DATA, backends.get())
    trainer.request_stop()
    assert trainer.run() is False
    assert trainer.state.epoch == trainer.state.progress.samples == 0


PARTS = ("_run_epoch", "_metrics", "_deform", "_train", "_on_samples", "_collect", "_count_errors")


@pytest.mark.parametrize("name", PARTS)
def test_an_interrupt_before_any_line_loses_nothing(name):
    """Before each line once, in the second epoch. Interrupts within a line are not tested."""
    code = getattr(Trainer, name).__code__
    lines = sorted({line for *_, line in code.co_lines() if line} - {code.co_firstlineno})
    config, backend, interrupted = make_config(epochs=2), backends.get(threads=1), []
    whole = train(config, backend)
    for wanted in lines:
        trainer = Trainer(config, DATA, backend)

        def trace(frame, event, argument, wanted=wanted, trainer=trainer):
            if frame.f_code is not code:
                return None
            if event == "line" and frame.f_lineno == wanted and trainer.state.epoch:
                sys.settrace(None)
                frame.f_trace = None
                interrupted.append(wanted)
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            trainer.run()
        except KeyboardInterrupt:
            sys.settrace(None)
            trainer.run()
        finally:
            sys.settrace(before)
        assert_same_result(whole, trainer.state)
    assert interrupted
