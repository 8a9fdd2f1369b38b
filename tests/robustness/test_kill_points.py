"""A run that is killed before any call that changes its folder goes on to its bits."""

import os
import signal
from contextlib import closing
from functools import partial

import pytest

import forked
from mlpcore import Trainer, backends
from mlpcore.files import LOCK_FILE
from mlpcore.store import run_folder
from mlpcore.store.run_folder import CONFIG, RUN_FILES, Run
from small_runs import DATA, StopAfter, assert_same_result, make_config, start_run


def drive(folder):
    """Begins a run, stops it in its second epoch, gives it a fourth one, and goes on to its end.

    Called again after a kill, it goes on wherever that came.
    """
    backend = backends.get("cpu", 1)
    if not os.path.lexists(folder / CONFIG):
        start_run(folder, make_config(), DATA, backend)[1].close()
    with closing(Run.open(folder)) as run:
        state = run.load()
        if run.config.epochs == 3:
            if state.begun < 2:
                trainer = Trainer(run.config, DATA, backend, [run], state)
                StopAfter(trainer, 1, 64)
                assert trainer.run() is False
            run.change_settings(run.config.with_epochs(4, state.begun))
        assert Trainer(run.config, DATA, backend, [run], state).run() is True
    return state


def watch(patch, last=None):
    """A list of the calls from now on that change a folder, or make a file durable.

    The process is killed before one of them.
    """
    calls = []

    def watched(name, call, *args, **kwargs):
        if len(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        calls.append(name)
        return call(*args, **kwargs)

    for name in ("open", "fsync", "replace"):
        patch.setattr(os, name, partial(watched, name, getattr(os, name)))
    return calls


def test_a_run_goes_on_after_a_kill_at_any_point(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "SAVING_SHARE", float("inf"))
    with pytest.MonkeyPatch.context() as patch:
        calls = watch(patch)
        expected = drive(tmp_path / "whole")
    # A power cut leaves what is synchronised: a file before it has its name, then its folder.
    assert " ".join(calls).count("fsync replace open fsync") == calls.count("replace") > 10
    for point in range(len(calls)):
        folder = tmp_path / f"{point}"

        def killed():
            with pytest.MonkeyPatch.context() as patch:
                watch(patch, point)  # noqa: B023
                drive(folder)  # noqa: B023

        outcome = forked.run(killed)
        assert outcome.status == -signal.SIGKILL, outcome
        assert_same_result(expected, drive(folder))
        assert sorted(os.listdir(folder)) == sorted([*RUN_FILES, LOCK_FILE])
