"""Whatever trains, and wherever it stops: it goes on to the bits that it has without the stop."""

import copy
import errno
import functools
import itertools
import os
import shutil
from contextlib import closing, nullcontext

import numpy as np
import pytest

from emulated import SIMD, get_backend
from mlpcore import InputError, Trainer, backends
from mlpcore.store import run_folder
from mlpcore.store.run_folder import LAST, Run
from mlpcore.training import sources
from mlpcore.training.sources import ArraySource
from small_runs import DATA, Hook, StopAfter, assert_same_result, load_run, make_config, start_run

#: Settings of trainings; SEGMENT is that of sources, within which a rate does not change.
SETTINGS = {
    "plain": make_config(),
    "rates within an epoch": make_config(decay="linear", warm_up=300),
    "sparse steps": make_config(hidden_layers=(300, 200), activation="relu", loss="cross-entropy"),
    "weights of samples, decay of the network's": make_config(),
}

BACKEND, BY_NAME = backends.get(), {name: get_backend(name, 2) for name in (SIMD[0], SIMD[-1])}

#: Who trains what. That C may stop anywhere is tested with every instruction set.
TRAINERS = [("plain", SIMD[0]), *((settings, SIMD[-1]) for settings in SETTINGS)]

#: Epochs and samples, of which the last is the end; events, at whose second time a stop is asked
#: for, or something raises, as Ctrl-C does in a notebook.
PLACES = [(0, 0), (0, 64), (0, 224), (1, 0), (1, 96), (2, 32), (2, 224), (3, 0)]
PLACES += itertools.product(["epoch_start", "training", "evaluating"], ["stop", "raise"])

#: The n-th file that is to take its place in a folder, where that fails.
SAVES = list(itertools.product([KeyboardInterrupt, OSError(errno.ENOSPC, "full")], [0, 1, 2, 6]))


@pytest.fixture(autouse=True)
def every_epoch_is_saved(monkeypatch):
    monkeypatch.setattr(run_folder, "SAVING_SHARE", float("inf"))
    monkeypatch.setattr(sources, "SEGMENT", 64)


def make_trainer(config, backend, weighted=False, state=None):
    weights, decay = (np.arange(230) % 4, 0.5) if weighted else (None, 0.0)
    source = ArraySource.of(DATA, config, backend, weights)
    return Trainer(config, source, backend, state=state, weight_decay=decay)


@functools.cache
def undisturbed(*arguments):
    trainer = make_trainer(*arguments)
    assert trainer.run() is True
    return trainer.state


def stop(trainer, place):
    """Runs a trainer until a place."""
    where, how = place
    if how in ("stop", "raise"):
        seen = []

        def interrupt(trainer, event, *_):
            seen.append(event)
            if event == where and seen.count(event) == 2:
                if how == "raise":
                    raise KeyboardInterrupt
                trainer.request_stop()

        trainer.observers += (Hook(interrupt),)
        with pytest.raises(KeyboardInterrupt) if how == "raise" else nullcontext():
            assert trainer.run() is False
    else:
        StopAfter(trainer, where, how)
        assert trainer.run() is (where == trainer.config.epochs)
        assert (trainer.state.epoch, trainer.state.progress.samples) == place
    return trainer.state


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("settings, name", TRAINERS)
def test_a_trainer_goes_on(settings, name, place):
    """The same one, and another one."""
    arguments = SETTINGS[settings], BY_NAME[name], settings.startswith("weights")
    trainer = make_trainer(*arguments)
    state = copy.deepcopy(stop(trainer, place))
    before, other = state.seconds, make_trainer(*arguments, state)
    for each in (trainer, other):
        assert each.run() is True
        assert_same_result(undisturbed(*arguments), each.state)
        assert before <= each.state.seconds == sum(m.seconds for m in each.state.history)


def go_on(folder, place=None):
    """The state of a run that goes on to a place, or to its end."""
    with closing(Run.open(folder)) as run:
        run.check_data(DATA)
        trainer = Trainer(run.config, DATA, BACKEND, [run], run.load())
        return stop(trainer, place or (run.config.epochs, 0))


@pytest.mark.parametrize("place", [*PLACES, "before its first network"], ids=str)
@pytest.mark.parametrize("decay, epochs", [("factor", 3), ("factor", 5), ("linear", 5)])
def test_a_run_goes_on(tmp_path, decay, epochs, place):
    """Or to more epochs, as if it had had them from the beginning, with another stop in them."""
    folder, seconds = tmp_path / "run", 0.0
    start_run(folder, make_config(decay=decay), DATA)[1].close()
    if place == "before its first network":
        (folder / LAST).unlink()
    else:
        before = go_on(folder, place)
        seconds = before.seconds if isinstance(place[0], int) else 0.0
        if place[1] != "raise":  # which leaves the folder as it was saved last
            found = load_run(folder)
            assert (found.epoch, found.progress) == (before.epoch, before.progress)
    with closing(Run.open(folder)) as run:
        run.change_settings(run.config.with_epochs(epochs, run.load().begun))
        config = run.config
    if place == (0, 0):
        assert config == make_config(decay=decay, epochs=epochs)
    if epochs == 5:
        go_on(folder, (4, 64))
    state = go_on(folder)
    assert_same_result(undisturbed(config, BACKEND), state)
    assert_same_result(load_run(folder), state)
    assert seconds <= state.seconds == sum(metrics.seconds for metrics in state.history)


@pytest.mark.parametrize("error, n", SAVES)
def test_a_save_that_fails_loses_nothing(tmp_path, monkeypatch, error, n):
    """The run on disk goes on, and so does the trainer."""
    trainer, run = start_run(tmp_path / "run", make_config(), DATA)
    replace, calls = os.replace, itertools.count()

    def fail(*args, **folders):
        if next(calls) == n:
            raise error
        replace(*args, **folders)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises((KeyboardInterrupt, InputError)):
            trainer.run()
    copied = shutil.copytree(run.folder, tmp_path / "copy")
    assert trainer.run() is True
    run.close()
    for state in (trainer.state, go_on(run.folder), go_on(copied)):
        assert_same_result(undisturbed(make_config(), BACKEND), state)
