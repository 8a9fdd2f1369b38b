"""Experiments small enough to be run: data, finished runs, their evidence."""

import os
import shutil
from pathlib import Path

import pytest

from mlpcore.commands import runs
from mlpcore.network.architecture import PRESETS
from small_runs import isolate, write_idx
from table1.command import main
from table1_runs import SMALL, arguments


@pytest.fixture
def isolated(tmp_path, monkeypatch):
    """An empty working folder and small networks, without this machine's data and the network.

    No test cuts the power, so nothing waits for the disk.
    """
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    for name, widths in SMALL.items():
        monkeypatch.setitem(PRESETS, name, widths)


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take longer than these trainings."""
    monkeypatch.setattr(runs, "draw", lambda *args: [])


@pytest.fixture
def data(tmp_path, isolated):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Runs of the same settings that nothing has interrupted, with figures."""
    folder = tmp_path_factory.mktemp("whole")
    data = str(write_idx(folder / "letters"))
    with pytest.MonkeyPatch.context() as patch:
        for name, widths in SMALL.items():
            patch.setitem(PRESETS, name, widths)
        assert main(arguments(data, "--out", str(folder / "out"))) == 0
    return folder / "out"


@pytest.fixture
def half_done(data, whole, no_figures):
    """net1 is finished, net2 has not begun."""
    shutil.copytree(whole / "net1-seed0", "out/net1-seed0")
    return arguments(data, "--out", "out")


@pytest.fixture
def kept(half_done):
    """Evidence of net1."""
    assert main(["--evidence", "kept", "--out", "out"]) == 0
    return Path("kept")
