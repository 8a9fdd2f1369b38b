"""A PyTorch Dataset whose images are deformed anew for every epoch, by any number of workers.

It uses scikit-learn's digits and takes a few seconds. It needs `pip install torch`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from mlpcore import ElasticDeformer, dataset


class DeformedImages(Dataset):
    """Images (n, height, width) with labels (n,), each deformed when it is asked for.

    The result depends on the deformer's seed, the epoch and the image's index alone, not on the
    worker or the other images of a batch.
    """

    def __init__(self, images: np.ndarray, labels: np.ndarray, deformer: ElasticDeformer):
        self.images, self.labels = images, labels
        self.deformer = deformer.fit(images)
        # In shared memory, because persistent workers have copies of everything else.
        self.epoch = torch.zeros((), dtype=torch.int64).share_memory_()

    def set_epoch(self, epoch: int) -> None:
        """To be called before each epoch's iteration over the DataLoader."""
        self.epoch.fill_(epoch)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[torch.Tensor, int]]:
        """A whole batch; a DataLoader prefers this method."""
        labels = self.labels[indices]
        images = self.deformer.deform(
            self.images[indices], labels, epoch=int(self.epoch), indices=indices
        )
        return list(zip(torch.from_numpy(images), labels.tolist()))


def main(epochs: int = 5, workers: int = 2) -> None:
    torch.manual_seed(0)
    data = dataset.load(name="digits")  # 29x29 pixels in [-1, 1]
    deformer = ElasticDeformer(similar_labels=data.similar_labels, random_state=0)
    deformed = DeformedImages(data.train_images, data.train_labels, deformer)
    loader = DataLoader(
        deformed, batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    hidden, output = nn.Linear(data.n_inputs, 100), nn.Linear(100, data.n_classes)
    model = nn.Sequential(nn.Flatten(), hidden, nn.Tanh(), output)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        deformed.set_epoch(epoch)
        for images, labels in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimiser.step()
        with torch.no_grad():
            guesses = model(torch.from_numpy(data.test_images)).argmax(dim=1).numpy()
        right = np.mean(guesses == data.test_labels)
        print(f"epoch {epoch + 1}: {right:.1%} of the test set right")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
