"""The training loop: what an epoch computes, the best network, divergence."""

import dataclasses
import math
import sys
from itertools import groupby

import numpy as np
import pytest

from emulated import get_backend
from mlpcore import backends, cpu, deformation, philox
from mlpcore.deformation.values import background_of
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training import sources
from mlpcore.training import trainer as training
from mlpcore.training.sources import ArraySource
from mlpcore.training.state import TrainingState
from mlpcore.training.trainer import Trainer
from small_runs import (
    C_BACKENDS,
    DATA,
    FLAT,
    FLAT_TEST,
    Hook,
    assert_same_result,
    make_config,
    same_weights,
    train,
)


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
        arguments = DATA.train_labels, config.deformation, 5, epoch, backend
        around = background_of(DATA.train_images)
        shown = deformation.deform(DATA.train_images, *arguments, background=around)
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


@pytest.mark.parametrize("name", C_BACKENDS)
def test_same_bits_for_any_number_of_threads(name):
    config = make_config(hidden_layers=(70, 40), epochs=2)
    one, two, three = (train(config, get_backend(name, threads)) for threads in (1, 2, 3))
    assert_same_result(one, two)
    assert_same_result(one, three)


def test_light_paper_stays_light():
    """What comes in from outside of an image has the colour of the borders of training images."""
    framed, shown = DATA.train_images.copy(), []
    framed[:, [0, -1]] = framed[:, :, [0, -1]] = -1

    def look(trainer, event, *arguments):
        if event == "training":
            shown.append(trainer.source.segment(0, 0, 1).inputs.copy())
            trainer.request_stop()

    for images in (framed, -framed):
        data = dataclasses.replace(DATA, train_images=images)
        Trainer(make_config(), data, backends.get("scalar", 1), [Hook(look)]).run()
    assert np.array_equal(shown[0], -shown[1])
    assert not np.array_equal(shown[0], framed.reshape(230, 35))


def test_same_bits_however_an_epoch_is_cut(c_backend, monkeypatch):
    """Parts of the deformation grow when they are quick: the second epoch's is the whole."""
    events = []
    hook = Hook(lambda trainer, *arguments: events.append(arguments[:2]))
    monkeypatch.setattr(sources, "PART_SECONDS", math.inf)
    whole = train(make_config(), c_backend, [hook])
    assert [event[1] for event in events if event[0] == "deforming"] == [0, 100, 0, 0]
    kinds = [kind for kind, _ in groupby(event[0] for event in events)]
    assert kinds == 3 * ["epoch_start", "deforming", "training", "evaluating", "epoch_end"]
    monkeypatch.setattr(training, "SEGMENT", 64)
    monkeypatch.setattr(sources, "PART_SECONDS", 0)  # always the smallest part
    assert_same_result(whole, train(make_config(), c_backend, [hook]))
    assert {("deforming", 100), ("training", 64), ("evaluating", 230)} <= set(events)


def test_networks_labels_and_rates_that_do_not_fit(monkeypatch):
    with pytest.raises(InputError, match=r"35, 9, 3.*expected \(35, 9, 6, 3\)"):
        Trainer(make_config(), DATA, backends.get(), state=TrainingState(Network((35, 9, 3))))
    data = dataclasses.replace(DATA, n_classes=DATA.n_classes - 1)
    for name, value in (("activation", "relu"), ("loss", "cross-entropy")):
        network = Network((35, 9, 6, 3), **{name: value})
        with pytest.raises(InputError, match=f"{value}.*expected .*, tanh, squared"):
            Trainer(make_config(), DATA, backends.get(), state=TrainingState(network))
    with pytest.raises(InputError, match="train labels: from 0 to 2, expected 0 to 1"):
        Trainer(make_config(), data, backends.get())
    monkeypatch.setattr(training, "SEGMENT", 2)
    with pytest.raises(InputError, match="learning rate of a layer"):
        Trainer(make_config(learning_rate=1e-43, decay="linear"), DATA, backends.get())


def test_a_stop_requested_before_the_run_stops_it_at_once():
    trainer = Trainer(make_config(), DATA, backends.get())
    trainer.request_stop()
    assert trainer.run() is False
    assert trainer.state.epoch == trainer.state.progress.samples == 0


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


def test_a_run_that_needs_more_memory_than_there_is(monkeypatch):
    """Weights four times: in training, the best, packed, and being saved. Images twice."""
    n_weights, n_pixels = 9 * 36 + 6 * 10 + 3 * 7, 290 * 35
    needed = 16 * n_weights + 8 * n_pixels
    monkeypatch.setattr(cpu, "total_memory", lambda: needed)
    Trainer(make_config(), DATA, backends.get("scalar"))
    monkeypatch.setattr(cpu, "total_memory", lambda: needed - 1)
    with pytest.raises(InputError, match="a network and data of this size need about"):
        Trainer(make_config(), DATA, backends.get("scalar"))
