"""Every test of a command runs in an empty folder, without MNIST and without a network."""

import contextlib
import os
import re
import shutil
from pathlib import Path

import pytest

from mlpcore import Trainer, backends, dataset
from mlpcore.__main__ import main
from mlpcore.commands import committee, runs
from mlpcore.data import mnist
from small_runs import finish_run, isolate, make_config, write_idx


@pytest.fixture(autouse=True)
def isolated(request, tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(mnist, "download", lambda *args: "there is no network")
    if not request.node.get_closest_marker("figures"):  # which take longer than these trainings
        monkeypatch.setattr(runs, "trained_figures", lambda *args: {})
        monkeypatch.setattr(committee, "committee_figures", lambda *args: {})


@pytest.fixture
def data(tmp_path):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


@pytest.fixture(scope="package")
def made(tmp_path_factory):
    """A folder of small IDX files, and two finished runs on them."""
    folder = tmp_path_factory.mktemp("made")
    data = dataset.load(write_idx(folder / "letters"))
    for name, changes in (
        ("run", {"learning_rate": 0.008}),  # which leaves some errors
        ("other", {"hidden_layers": (7,), "seed": 8}),
    ):
        config = make_config(backend="scalar", **changes)
        finish_run(folder / name, config, data, backends.get("scalar", 1))
    return folder


@pytest.fixture
def made_here(made, isolated, monkeypatch):
    """Copies of what is made, in the working folder."""
    shutil.copytree(made, ".", dirs_exist_ok=True)
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")


@pytest.fixture
def call(capsys):
    """Calls a command that must succeed; returns what it prints."""

    def run(*argv):
        capsys.readouterr()
        status = main([str(each) for each in argv])
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return out

    return run


def contents():
    """Everything in the working folder."""
    return {path: path.is_file() and path.read_bytes() for path in Path().rglob("*")}


@pytest.fixture
def refusal(capsys):
    """Calls a command that must refuse; returns its one line on stderr. Nothing is written."""

    def run(*argv):
        capsys.readouterr()
        before = contents()
        assert main([str(each) for each in argv]) == 2
        err = capsys.readouterr().err
        assert re.fullmatch(r"error: [^\n]+\n", err)
        assert contents() == before
        return err

    return run


@pytest.fixture
def signal_in():
    """Sends this process a signal, twice, when a training of a seed is in an epoch."""

    @contextlib.contextmanager
    def sending(number, epoch, seed=0):
        on_samples = Trainer._on_samples

        def hook(self, *arguments):
            if (self.config.seed, self.state.epoch) == (seed, epoch):
                patch.undo()
                os.kill(os.getpid(), number)
                os.kill(os.getpid(), number)  # an impatient second one
            return on_samples(self, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Trainer, "_on_samples", hook)
            yield

    return sending
