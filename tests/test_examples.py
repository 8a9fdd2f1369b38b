"""The examples do what they say."""

import multiprocessing
import re
from pathlib import Path

import numpy as np
import pytest

from mlpcore import ElasticDeformer, dataset

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


def test_torch_dataset(capsys):
    torch = pytest.importorskip("torch")
    import torch_dataset

    torch.set_num_threads(1)  # two wait for each other where others use the cores
    torch_dataset.main(epochs=3, workers=0)
    shares = percentages(capsys.readouterr().out)
    assert len(shares) == 3
    assert shares[-1] > 80


def test_torch_dataset_is_the_same_with_any_workers():
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader
    from torch_dataset import DeformedImages

    data = dataset.load(name="digits")
    images, labels = data.train_images[:70], data.train_labels[:70]
    deformer = ElasticDeformer(similar_labels=(1, 7), random_state=0)
    deformed = DeformedImages(images, labels, deformer)
    expected = [deformer.deform(images, labels, epoch=epoch) for epoch in range(2)]
    before = multiprocessing.active_children()
    for workers in (0, 2):
        loader = DataLoader(
            deformed, batch_size=9, num_workers=workers, persistent_workers=workers > 0
        )
        for epoch in (0, 1, 0):
            deformed.set_epoch(epoch)
            shown, known = (torch.cat(parts).numpy() for parts in zip(*loader))
            assert np.array_equal(shown, expected[epoch])
            assert np.array_equal(known, labels)
        del loader
    assert multiprocessing.active_children() == before
    image, label = deformed[69]
    assert np.array_equal(image, expected[0][69])
    assert label == labels[69]
    assert len(deformed) == 70
