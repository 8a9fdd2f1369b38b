"""Every test of a command runs in an empty folder, without MNIST and without a network."""

import os
import re

import pytest

from mlpcore.commands import main, runs
from mlpcore.data import mnist
from small_runs import isolate, write_idx


@pytest.fixture(autouse=True)
def isolated(request, tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(mnist, "download", lambda *args: "there is no network")
    if not request.node.get_closest_marker("figures"):  # which take longer than these trainings
        monkeypatch.setattr(runs, "draw", lambda *args: [])


@pytest.fixture
def data(tmp_path):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


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


@pytest.fixture
def refusal(capsys):
    """Calls a command that must refuse; returns its one line on stderr. Nothing is written."""

    def run(*argv):
        capsys.readouterr()
        before = sorted(os.walk("."))
        assert main([str(each) for each in argv]) == 2
        err = capsys.readouterr().err
        assert re.fullmatch(r"error: [^\n]+\n", err)
        assert sorted(os.walk(".")) == before
        return err

    return run
