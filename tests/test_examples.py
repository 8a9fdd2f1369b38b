"""The examples do what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(autouse=True)
def examples_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def percentages(text):
    return [float(found) for found in re.findall(r"([\d.]+)%", text)]


def test_grid_search(capsys):
    import grid_search

    grid_search.main()
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 5
    assert min(percentages(out)) > 85


@pytest.fixture
def one_torch_thread():
    """Two wait for each other where others use the cores."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_torch_dataset(one_torch_thread, capsys):
    import torch_dataset

    torch_dataset.main(epochs=3, workers=0)
    shares = percentages(capsys.readouterr().out)
    assert len(shares) == 3
    assert shares[-1] > 80


def test_torch_dataset_is_the_same_with_any_workers():
    pytest.importorskip("torch")
    command = [sys.executable, str(Path(__file__).with_name("torch_workers.py"))]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "alike\n"), result.stderr
