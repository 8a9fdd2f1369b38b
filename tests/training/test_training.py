"""The training loop: what an epoch computes, the schedule, stop and resume, divergence."""

import copy
import dataclasses
import json
import math
import signal
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emulated
from mlpcore import backends, deformation, philox
from mlpcore.deformation.deform import IDENTITY, DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training import trainer as training
from mlpcore.training.config import TrainingConfig, default_learning_rate_end
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


def train(config, backend, observers=(), state=None):
    trainer = Trainer(config, DATA, backend, observers, state)
    assert trainer.run() is True
    return trainer.state


@pytest.fixture(params=emulated.BACKENDS)
def backend(request):
    return emulated.get_backend(request.param, threads=2)


@pytest.fixture(params=C_BACKENDS)
def c_backend(request):
    return backends.get(request.param, threads=2)


# What an epoch is


def test_an_epoch_is_deformation_order_training_and_counting(backend, capsys):
    config = make_config(epochs=2)
    state = train(config, backend)
    network = Network((35, 9, 6, 3), config.seed)
    loaded = backend.load(network)
    flat, flat_test = DATA.train_images.reshape(-1, 35), DATA.test_images.reshape(-1, 35)
    for epoch, metrics in enumerate(state.history):
        shown = deformation.deform(
            DATA.train_images, DATA.train_labels, config.deformation, 5, epoch, backend
        )
        order = philox.permutation(230, 5, epoch)
        rate = config.learning_rate_at(epoch)
        result = backend.train(loaded, shown.reshape(-1, 35), DATA.train_labels, order, rate)
        assert metrics.epoch == epoch + 1
        assert metrics.learning_rate == rate
        assert metrics.training_errors == result.errors
        assert metrics.loss == pytest.approx(result.loss / 230, rel=1e-5)
        assert metrics.validation_errors == backend.count_errors(loaded, flat, DATA.train_labels)
        assert metrics.test_errors == backend.count_errors(loaded, flat_test, DATA.test_labels)
    backend.store(loaded, network)
    assert same_weights(state.network, network)
    assert capsys.readouterr() == ("", "")


def test_training_learns():
    state = train(make_config(epochs=8), backends.get())
    assert state.best_metrics.validation_error < 5
    assert state.history[-1].loss < state.history[0].loss / 2


def test_identity_trains_on_the_images_themselves(monkeypatch):
    def deform(*args, **kwargs):
        raise AssertionError("deformed")

    monkeypatch.setattr(deformation, "deform", deform)
    state = train(make_config(epochs=1, deformation=IDENTITY), backends.get())
    network = Network((35, 9, 6, 3), 5)
    images = DATA.train_images.reshape(-1, 35)
    backend = backends.get()
    loaded = backend.load(network)
    backend.train(loaded, images, DATA.train_labels, philox.permutation(230, 5, 0), 0.01)
    backend.store(loaded, network)
    assert same_weights(state.network, network)


def test_percentages_and_times():
    metrics = train(make_config(epochs=1), backends.get()).history[0]
    metrics = dataclasses.replace(metrics, training_errors=23, validation_errors=46, test_errors=3)
    assert (metrics.training_error, metrics.validation_error, metrics.test_error) == (10, 20, 5)
    parts = metrics.deformation_seconds, metrics.training_seconds, metrics.evaluation_seconds
    assert min(parts) >= 0
    assert metrics.seconds == sum(parts)


@pytest.mark.parametrize("name", C_BACKENDS)
def test_same_bits_for_any_number_of_threads(name):
    config = make_config(hidden_layers=(70, 40), epochs=2)
    states = [train(config, backends.get(name, threads)) for threads in (1, 2, 3)]
    assert_same_result(states[0], states[1])
    assert_same_result(states[0], states[2])


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
    begins = []

    def note(trainer, phase, *numbers):
        if phase == "deforming":
            begins.append(numbers[0])

    train(make_config(epochs=2), backends.get(), [Hook(note)])
    assert begins == [0, 100, 0]


def test_another_seed_gives_another_network():
    one, two = (train(make_config(seed=seed), backends.get()) for seed in (1, 2))
    assert not same_weights(one.network, two.network)


def test_a_network_that_does_not_fit():
    state = training.TrainingState(Network((35, 9, 3)))
    with pytest.raises(InputError, match=r"35, 9, 3.*expected \(35, 9, 6, 3\)"):
        Trainer(make_config(), DATA, backends.get(), state=state)


# The best network


def report(progress, result):
    """Ends a call of `Backend.train` as the contract says."""
    progress(result)
    return result


class Scripted:
    """A backend whose training adds 1 to a bias and whose error counts are given."""

    def __init__(self, validation, test):
        self.counts = iter([count for pair in zip(validation, test) for count in pair])
        self.value = 0.0
        self.inner = backends.get("cpu")

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def train(self, network, images, labels, order, learning_rate, progress=None, target=1.0):
        self.value += 1
        network.biases[0][0] = self.value
        return report(progress, backends.TrainingResult(len(order), 0, 1.0))

    def count_errors(self, network, images, labels, poll=None):
        return next(self.counts)


def test_a_count_asks_whether_to_stop():
    class Asking(Scripted):
        def count_errors(self, network, images, labels, poll=None):
            poll()
            return super().count_errors(network, images, labels)

    reports = []

    def note(trainer, event, *numbers):
        if event == "evaluating":
            reports.append(numbers)

    train(make_config(epochs=1), Asking(validation=(9,), test=(9,)), [Hook(note)])
    assert reports == [(0, 290), (0, 290), (230, 290), (230, 290)]


def test_the_first_of_the_lowest_validation_errors_wins():
    scripted = Scripted(validation=(9, 4, 7, 4, 5), test=(9, 3, 2, 1, 6))
    state = train(make_config(epochs=5), scripted)
    assert state.best_metrics.epoch == 2
    assert state.best_metrics.test_errors == 3
    assert state.best.biases[0][0] == 2
    assert state.network.biases[0][0] == 5
    assert state.best_test_error == 100 * 1 / 60


def test_a_lower_validation_error_replaces_the_best():
    state = train(make_config(epochs=3), Scripted(validation=(9, 4, 3), test=(1, 2, 3)))
    assert state.best_metrics.epoch == 3
    assert state.best.biases[0][0] == 3
    assert state.best_test_error == 100 * 1 / 60


# Stop and resume


@pytest.mark.parametrize(("epoch", "samples"), [(0, 0), (0, 224), (1, 0), (1, 96), (2, 32)])
def test_resume_equals_uninterrupted(c_backend, epoch, samples):
    config = make_config()
    stopped = run_with_stop(config, DATA, c_backend, epoch, samples)
    resumed = train(config, c_backend, state=stopped.state)
    assert_same_result(train(config, c_backend), resumed)


@pytest.mark.parametrize("phase", ["training", "deforming", "evaluating", "epoch_start"])
def test_what_an_observer_raises_loses_nothing(c_backend, phase, monkeypatch):
    """Ctrl-C in a notebook, for example: another call goes on."""
    monkeypatch.setattr(training, "SEGMENT", 64)
    config, backend = make_config(), c_backend

    def interrupt(trainer, event, done=1, *rest):
        if raised == [] and trainer.state.epoch == 1 and event == phase and done:
            raised.append(done)
            raise KeyboardInterrupt

    raised = []
    if phase == "deforming":
        monkeypatch.setattr(training, "PART_SECONDS", 0)
    trainer = Trainer(config, DATA, backend, observers=[Hook(interrupt)])
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    rest = Trainer(config, DATA, backend, state=copy.deepcopy(trainer.state))
    assert trainer.run() and rest.run()
    whole = train(config, backend)
    assert_same_result(whole, trainer.state)
    assert_same_result(whole, rest.state)


PARTS = ("_run_epoch", "_deform", "_train", "_on_samples", "_collect", "_evaluate")


@pytest.mark.parametrize("name", PARTS)
def test_an_interrupt_before_any_line_loses_nothing(name):
    """Once, in the second epoch; of what Python does within a line it does not tell."""
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


def test_an_exception_amid_samples_loses_none(c_backend, monkeypatch):
    train_whole, calls = c_backend.train, []

    def fail_once(network, images, labels, order, *rest):
        calls.append(len(order))
        if len(calls) != 2:
            return train_whole(network, images, labels, order, *rest)
        train_whole(network, images, labels, order[:96], *rest)
        raise KeyboardInterrupt

    whole = train(make_config(), c_backend)
    monkeypatch.setattr(c_backend, "train", fail_once)
    trainer = Trainer(make_config(), DATA, c_backend)
    with pytest.raises(KeyboardInterrupt):
        trainer.run()
    assert (trainer.state.epoch, trainer.state.progress.samples) == (1, 96)
    assert trainer.run()
    assert calls[2] == calls[1] - 96
    assert_same_result(whole, trainer.state)


def test_a_signal_between_two_polls_loses_no_sample(c_backend):
    """Also one after the last poll: these samples take less time than lies between two."""
    images = DATA.train_images.reshape(len(DATA.train_images), -1)
    order = np.resize(np.arange(len(images), dtype=np.int32), 5000)
    network = Network((DATA.n_inputs, 300, DATA.n_classes), seed=1)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    def start(result):
        if not results:
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
        results.append(result)

    results, before = [], signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            c_backend.train(network, images, DATA.train_labels, order, 0.01, start)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    result = results[-1]
    again = Network((DATA.n_inputs, 300, DATA.n_classes), seed=1)
    c_backend.train(again, images, DATA.train_labels, order[: result.samples], 0.01)
    assert result.samples > 0
    assert same_weights(network, again)


@pytest.mark.parametrize("name", [*C_BACKENDS, "reference", "cuda-emulated"])
def test_when_progress_raises_it_knows_what_was_trained(name):
    backend, order = emulated.get_backend(name), np.arange(160, dtype=np.int32)
    images = backend.put(DATA.train_images.reshape(len(DATA.train_images), -1))
    labels = backend.put(DATA.train_labels)
    results, network = [], Network((DATA.n_inputs, 9, DATA.n_classes), seed=1)
    loaded = backend.load(network)

    def fail(result):
        results.append(result)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backend.train(loaded, images, labels, order, 0.01, fail)
    first = results[-1]
    second = backend.train(loaded, images, labels, order[first.samples :], 0.01)
    backend.store(loaded, network)
    other = Network((DATA.n_inputs, 9, DATA.n_classes), seed=1)
    whole_loaded = backend.load(other)
    whole = backend.train(whole_loaded, images, labels, order, 0.01)
    backend.store(whole_loaded, other)
    assert len(results) == 2 and first.samples + second.samples == whole.samples
    assert first.errors + second.errors == whole.errors
    assert first.loss + second.loss == pytest.approx(whole.loss, rel=1e-5)  # float32 sums
    if name != "reference":  # whose float64 weights are rounded at every stop
        assert same_weights(network, other)


def test_labels_beyond_the_classes():
    data = dataclasses.replace(DATA, n_classes=DATA.n_classes - 1)
    with pytest.raises(InputError, match="train labels: from 0 to 2, expected 0 to 1"):
        Trainer(make_config(), data, backends.get())


@pytest.mark.parametrize(("epoch", "samples"), [(0, 1), (0, 229), (1, 17)])
def test_the_immediate_schedule_resumes_at_any_sample(epoch, samples):
    config, backend = make_config(), backends.get("cpu", schedule="immediate")
    stopped = run_with_stop(config, DATA, backend, epoch, samples)
    assert_same_result(train(config, backend), train(config, backend, state=stopped.state))


def test_resume_of_the_reference_at_an_epochs_end():
    config, reference = make_config(), backends.get("reference")
    stopped = run_with_stop(config, DATA, reference, 1, 0)
    assert_same_result(train(config, reference), train(config, reference, state=stopped.state))


def test_resume_of_the_reference_within_an_epoch_rounds_once_more():
    """It computes an epoch in float64, of which a stop keeps float32."""
    config, reference = make_config(), backends.get("reference")
    stopped = run_with_stop(config, DATA, reference, 1, 100)
    whole, resumed = train(config, reference), train(config, reference, state=stopped.state)
    for a, b in zip(whole.network.weights, resumed.network.weights):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("phase", ["epoch_start", "deforming", "training", "evaluating"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_stop_in_any_phase_loses_nothing(phase, at):
    """Stops as often as the phase comes, each time for the `at`-th report of it."""
    config, backend = make_config(), backends.get()
    seen, stops = [], []

    def stop(trainer, event, *numbers):
        if event == "stop":
            stops.append(trainer.state.progress.samples)
        elif event == phase:
            seen.append(event)
            if len(seen) == at + 1:
                trainer.request_stop()

    trainer = Trainer(config, DATA, backend, [Hook(stop)])
    assert trainer.run() is False
    state = trainer.state
    if phase == "training" and at == 1:
        assert 0 < state.progress.samples < 230
    elif phase == "evaluating":
        assert state.progress.samples == 230
    assert stops == [state.progress.samples]
    assert_same_result(train(config, backend), train(config, backend, state=state))


def test_the_same_trainer_can_go_on():
    config, backend = make_config(), backends.get()
    trainer = run_with_stop(config, DATA, backend, 1, 64)
    assert trainer.run() is True
    assert_same_result(train(config, backend), trainer.state)


def test_a_stop_requested_before_the_run_stops_it_at_once():
    trainer = Trainer(make_config(), DATA, backends.get())
    trainer.request_stop()
    assert trainer.run() is False
    assert trainer.state.epoch == trainer.state.progress.samples == 0


def test_time_accumulates_over_stops():
    trainer = run_with_stop(make_config(), DATA, backends.get(), 1, 64)
    before = trainer.state.seconds
    assert before > trainer.state.history[0].seconds
    trainer.run()
    assert trainer.state.seconds > before
    assert trainer.state.seconds == sum(m.seconds for m in trainer.state.history)


def test_observers_are_told_in_order():
    events = []

    def note(trainer, event, *arguments):
        if not events or events[-1] != event:
            events.append(event)

    train(make_config(epochs=2), backends.get(), [Hook(note)])
    assert events == 2 * ["epoch_start", "deforming", "training", "evaluating", "epoch_end"]


# Divergence


def test_divergence_names_epoch_and_learning_rate(backend):
    config = make_config(learning_rate=3e38, learning_rate_end=3e38)
    with np.errstate(all="ignore"), pytest.raises(Diverged) as caught:
        train(config, backend)
    assert "epoch 1 at learning rate 3e+38" in str(caught.value)
    assert "\n" not in str(caught.value)


def poisoned(loss, samples_per_call):
    """A backend whose training in the second epoch leaves a NaN in the weights."""
    scripted = Scripted(validation=(9,), test=(9,))

    def train(network, images, labels, order, learning_rate, progress=None, target=1.0):
        samples_per_call.append(len(order))
        bad = sum(samples_per_call) > 230
        if bad:
            network.weights[1][0, 0] = math.nan
        return report(progress, backends.TrainingResult(len(order), 0, loss if bad else 1.0))

    scripted.train = train
    return scripted


def test_rates_of_layers_and_the_target_reach_the_backend():
    scripted, seen = Scripted(validation=(9, 9), test=(9, 9)), []

    def train_one(network, images, labels, order, learning_rate, progress=None, target=1.0):
        seen.append((learning_rate, target))
        return report(progress, backends.TrainingResult(len(order), 0, 1.0))

    scripted.train = train_one
    config = make_config(epochs=2, learning_rate_ratio=2, target=1.3)
    train(config, scripted)
    assert seen == [(config.learning_rates_at(epoch), 1.3) for epoch in range(2)]


def test_weights_that_are_not_finite_stop_training():
    events = []
    hook = Hook(lambda trainer, event, *rest: events.append(event))
    with pytest.raises(Diverged, match=r"epoch 2 at learning rate 0\.01: a weight"):
        train(make_config(learning_rate_end=0.01), poisoned(1.0, []), [hook])
    assert events.count("epoch_end") == 1
    assert "stop" not in events


def test_a_loss_that_is_not_finite_stops_within_the_epoch(monkeypatch):
    monkeypatch.setattr(training, "SEGMENT", 64)
    calls = []
    with pytest.raises(Diverged, match=r"epoch 2 .* the loss"):
        train(make_config(), poisoned(math.nan, calls))
    assert calls == [64, 64, 64, 38, 64]


def test_a_stop_does_not_keep_weights_that_are_not_finite():
    backend = poisoned(1.0, [230])
    hook = Hook(lambda trainer, event, *rest: event == "training" and trainer.request_stop())
    inner = backend.train

    def stopped(network, images, labels, order, *rest):
        hook.function(trainer, "training")
        return inner(network, images, labels, order[:10], *rest)

    backend.train = stopped
    trainer = Trainer(make_config(), DATA, backend)
    with pytest.raises(Diverged, match="a weight"):
        trainer.run()


# Settings


def test_learning_rates_of_layers():
    rates = make_config(hidden_layers=(9, 9), learning_rate=0.1).learning_rates_at(0)
    assert rates == (0.1, 0.1, 0.1)
    config = make_config(hidden_layers=(9, 9), learning_rate=0.1, learning_rate_ratio=2)
    assert config.learning_rates_at(0) == pytest.approx((0.2, 0.1, 0.05), rel=1e-15)
    config = make_config(hidden_layers=(), learning_rate=0.1, learning_rate_ratio=2)
    assert config.learning_rates_at(0) == (0.1,)
    config = make_config(hidden_layers=(9,), learning_rate=0.1, learning_rate_ratio=4)
    assert config.learning_rates_at(0) == pytest.approx((0.2, 0.05), rel=1e-15)


def test_learning_rate_schedule():
    config = make_config(epochs=4, learning_rate=1e-3, learning_rate_end=1e-6)
    rates = [config.learning_rate_at(epoch) for epoch in range(4)]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-5, 1e-6], rel=1e-12)
    assert make_config(epochs=1, learning_rate=0.3).learning_rate_at(0) == 0.3


@pytest.mark.parametrize(
    ("epochs", "end"),
    [(1, 1e-3), (1000, 1e-3 * 10 ** (-3 * 999 / 1999)), (2000, 1e-6), (9000, 1e-6)],
)
def test_default_end_of_the_schedule_is_the_papers(epochs, end):
    assert default_learning_rate_end(1e-3, epochs) == pytest.approx(end, rel=1e-12)
    config = TrainingConfig(epochs=epochs)
    assert config.learning_rate_at(epochs - 1) == pytest.approx(end, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_layers": (5, 0)}, "hidden layer 0"),
        ({"hidden_layers": (True,)}, "hidden layer True"),
        ({"epochs": 0}, "epochs 0"),
        ({"epochs": 2.0}, "epochs 2.0"),
        ({"epochs": 10**9}, "epochs 1000000000"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 2**64}, "seed 18446744073709551616"),
        ({"learning_rate": 0.0}, "learning rate 0.0"),
        ({"learning_rate": -1.0}, "learning rate -1.0"),
        ({"learning_rate": math.nan}, "learning rate nan"),
        ({"learning_rate": math.inf}, "learning rate inf"),
        ({"learning_rate": 1e39}, "learning rate 1e"),
        ({"learning_rate": "fast"}, "learning rate 'fast'"),
        ({"learning_rate_end": 1e-60}, "final learning rate 1e-60"),
        ({"learning_rate_ratio": 0}, "learning rate ratio 0"),
        ({"learning_rate_ratio": "2"}, "learning rate ratio '2'"),
        ({"learning_rate_ratio": 1e38, "learning_rate": 1e30}, "learning rate of a layer 1e+"),
        ({"learning_rate_ratio": 1e9, "hidden_layers": (1,) * 99}, "of a layer inf"),
        ({"target": 0}, "target 0"),
        ({"target": 1e-50}, "target 1e-50"),
        ({"target": 1.71589999}, "target 1.71589999"),
        ({"target": 1.72}, "target 1.72"),
        ({"target": math.nan}, "target nan"),
        ({"target": "1"}, "target '1'"),
        ({"backend": None}, "backend None"),
    ],
)
def test_settings_that_cannot_be(changes, words):
    with pytest.raises(InputError) as caught:
        make_config(**changes)
    assert words in str(caught.value)
    assert "expected" in str(caught.value)


configs = st.builds(
    TrainingConfig,
    hidden_layers=st.lists(st.integers(1, 10**6), max_size=9).map(tuple),
    epochs=st.integers(1, 10**6),
    learning_rate=st.floats(1e-30, 1e30),
    learning_rate_end=st.none() | st.floats(1e-30, 1e30),
    learning_rate_ratio=st.floats(0.1, 10),
    target=st.floats(1e-9, 1.7),
    deformation=st.builds(
        DeformationParameters,
        sigma=st.floats(0, 1e9),
        beta=st.floats(0, 89),
        similar_labels=st.lists(st.integers(0, 255)).map(tuple),
    ),
    seed=st.integers(0, 2**64 - 1),
    backend=st.text(),
)


@settings(max_examples=50, deadline=None)
@given(configs)
def test_settings_survive_json(config):
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


junk = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_json_with_another_value_is_refused_or_read(data):
    values = json.loads(json.dumps(make_config().to_json()))
    part = data.draw(st.sampled_from([values, values["deformation"]]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(junk)
    try:
        config = TrainingConfig.from_json(values)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert config == TrainingConfig.from_json(
            config.to_json()
            | {
                "hidden_layers": list(config.hidden_layers),
                "deformation": dataclasses.asdict(config.deformation)
                | {"similar_labels": list(config.deformation.similar_labels)},
            }
        )


def test_runs_from_before_targets_and_ratios_were_settings():
    values = json.loads(json.dumps(make_config().to_json()))
    del values["target"], values["learning_rate_ratio"]
    assert TrainingConfig.from_json(values) == make_config()


@pytest.mark.parametrize("values", [None, [], {}, {"epochs": 1}, "x"])
def test_json_that_is_no_settings(values):
    with pytest.raises(InputError, match="expected hidden_layers, epochs"):
        TrainingConfig.from_json(values)


def test_settings_of_numpy_types_survive_json():
    config = TrainingConfig(
        hidden_layers=np.array([7, 5]),
        epochs=np.int64(3),
        learning_rate=np.float32(0.5),
        seed=np.uint64(2**64 - 1),
        deformation=DeformationParameters(sigma=np.float32(5), similar_labels=np.array([4])),
    )
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deformation": None}, "deformation None: expected DeformationParameters"),
        ({"hidden_layers": 100}, "hidden layers 100: expected a list of widths"),
        ({"hidden_layers": "100"}, "hidden layer '1': expected a whole number"),
        ({"epochs": 2.0}, "epochs 2.0: expected a whole number"),
        ({"learning_rate": "1e-3"}, "learning rate '1e-3': expected a number"),
    ],
)
def test_settings_of_another_type(settings, message):
    with pytest.raises(InputError) as caught:
        TrainingConfig(**settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sigma": "6"}, "sigma '6': expected a number"),
        ({"beta": None}, "beta None: expected a number"),
        ({"alpha": 1e39}, "alpha 1e+39: expected a finite number, 0 or more and less than 1e+06"),
    ],
)
def test_deformations_of_another_type(parameters, message):
    with pytest.raises(InputError) as caught:
        DeformationParameters(**parameters)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("1",), "similar label '1': expected a whole number from 0 to 255"),
        ((300,), "similar label 300: expected a whole number from 0 to 255"),
        (7, "similar labels 7: expected a list of labels"),
        ("17", "similar label '1': expected a whole number"),
        (np.array(3), "similar labels array(3): expected a list of labels"),
    ],
)
def test_similar_labels_that_no_data_set_has(labels, message):
    """The estimator's are those of its y, which may be any."""
    parameters = DeformationParameters(similar_labels=labels)
    for use in (parameters.greatest_angles, lambda: TrainingConfig(deformation=parameters)):
        with pytest.raises(InputError) as caught:
            use()
        assert message in str(caught.value)


@pytest.mark.parametrize("sizes", [5, (None, 3), ("a", 3), (4, 0), (4, 2.5), (4,)])
def test_layer_sizes_that_make_no_network(sizes):
    with pytest.raises(InputError, match=r"^layer sizes .*: (size|expected)"):
        Network(sizes)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_seeds_of_another_network(seed):
    with pytest.raises(InputError, match=r"^seed .*: expected a whole number from 0 to"):
        Network((4, 3), seed=seed)
