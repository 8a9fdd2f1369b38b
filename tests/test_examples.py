"""The examples do what they say, and the tools start."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from mlpcore import Dataset, backends, dataset
from mlpcore.network.activation import ACTIVATIONS, LOSSES
from mlpcore.store.weights import write_network
from oracle import random_network
from small_runs import make_pixels

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(
    path
    for path in (*EXAMPLES.glob("*.py"), *ROOT.glob("tools/*.py"))
    if "__main__" in path.read_text()
)


def example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def percentages(text):
    return [float(found) for found in re.findall(r"([\d.]+)%", text)]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_help_says_what_a_program_does(path, capsys, monkeypatch):
    """A tool without what it compares with; an example may need its library."""
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    is_example = path.parent == EXAMPLES
    pytest.importorskip("scipy.stats")  # which fails where torch is taken away before
    for name in () if is_example else ("torch", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises((SystemExit, ImportError) if is_example else SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    if isinstance(ended.value, ImportError):
        pytest.skip(f"{ended.value.name} is not installed")
    assert (ended.value.code, capsys.readouterr().out[:7]) == (0, "usage: ")


@pytest.fixture
def torch():
    """PyTorch with one thread: more would wait for each other where tests share the cores."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return torch


def test_tensorboard_log(tmp_path):
    pytest.importorskip("tensorboard")
    example("tensorboard_log")["main"](str(tmp_path), epochs=2)
    assert len([*tmp_path.glob("width-*/events*")]) == 2


def test_own_data(capsys):
    example("own_data")["main"]()
    out = capsys.readouterr().out
    assert percentages(out)[0] < 15
    assert "digits: 1438 for training, 359 for the test\nclasses: eight, five, four, nine" in out


def test_own_data_of_other_libraries():
    """Stand-ins for `datasets.DatasetDict`, with columns of PIL's images, and for torchvision's."""
    names, columns, parts = ("a top", "b coat", "c bag"), {}, []
    pixels = {"train": make_pixels(30, 0), "test": make_pixels(9, 1)}
    for name, (images, labels) in pixels.items():
        columns[name] = {"image": [*map(Image.fromarray, images)], "label": labels.tolist()}
        parts.append(SimpleNamespace(data=images, targets=labels.astype(int), classes=names))
    module, expected = example("own_data"), Dataset.from_arrays(*pixels["train"], *pixels["test"])
    hugging, torchvision = module["from_hugging_face"](columns), module["from_torchvision"](*parts)
    assert (hugging.classes, torchvision.classes) == ((0, 1, 2), names)
    for data in (hugging, torchvision):
        for name in ("train_images", "train_labels", "test_images", "test_labels"):
            np.testing.assert_array_equal(getattr(data, name), getattr(expected, name))


def test_torch_dataset(torch, capsys):
    example("torch_dataset")["main"](epochs=3, workers=0)
    shares = percentages(capsys.readouterr().out)
    assert len(shares) == 3
    assert shares[-1] > 80


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", LOSSES)
def test_torch_import(tmp_path, torch, activation, loss):
    path = tmp_path / "net.safetensors"
    network = random_network((841, 60, 30, 10), 3, activation=activation, loss=loss)
    write_network(path, network, {})
    images = dataset.load(name="digits").test_images.reshape(-1, 841)
    with torch.no_grad():
        outputs = example("torch_import")["load"](path)(torch.from_numpy(images)).numpy()
    expected = backends.get("reference").predict(network, images)
    # Sums in float32 and in float64 differ by less than a third of this.
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)
