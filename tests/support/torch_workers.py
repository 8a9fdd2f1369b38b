"""Checks that a DataLoader's workers deform as one process does.

This is a script, because a test process should not fork when other libraries have threads in it.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from mlpcore import ElasticDeformer, dataset

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from torch_dataset import DeformedImages


def main():
    torch.set_num_threads(1)
    data = dataset.load(name="digits")
    images, labels = data.train_images[:70], data.train_labels[:70]
    deformer = ElasticDeformer(similar_labels=(1, 7), random_state=0)
    deformed = DeformedImages(images, labels, deformer)
    expected = [deformer.deform(images, labels, epoch=epoch) for epoch in range(2)]
    for workers in (0, 2):
        loader = DataLoader(
            deformed, batch_size=9, num_workers=workers, persistent_workers=workers > 0
        )
        for epoch in (0, 1, 0):
            deformed.set_epoch(epoch)
            shown, known = (torch.cat(parts).numpy() for parts in zip(*loader))
            assert np.array_equal(shown, expected[epoch]), (workers, epoch)
            assert np.array_equal(known, labels)
    print("alike")


if __name__ == "__main__":
    main()
