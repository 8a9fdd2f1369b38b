"""Train on your own data: arrays, a data set of Hugging Face or torchvision, a .npz file.

It uses the digits embedded in scikit-learn, under names instead of numbers, and takes a second.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from mlpcore import Dataset, DeformationParameters, Trainer, TrainingConfig, backends, dataset

NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def from_hugging_face(data: Any) -> Dataset:
    """Of `datasets.load_dataset("mnist")`, for example: columns of pictures and of labels."""
    train, test = data["train"], data["test"]
    return Dataset.from_arrays(train["image"], train["label"], test["image"], test["label"])


def from_torchvision(train: Any, test: Any) -> Dataset:
    """Of `torchvision.datasets.FashionMNIST(folder, train=True)`, for example, and its test set."""
    names = np.array(train.classes)
    labels, test_labels = names[np.asarray(train.targets)], names[np.asarray(test.targets)]
    return Dataset.from_arrays(train.data, labels, test.data, test_labels)


def main(epochs: int = 8) -> None:
    digits = load_digits()
    X, y = digits.images, NAMES[digits.target]  # float64 (1797, 8, 8) from 0 to 16, and words
    data = Dataset.from_arrays(X, y, test_size=0.25, similar_labels=("one", "seven"))

    gentle = DeformationParameters(alpha=3, beta=10, gamma=10)  # the images are small
    config = TrainingConfig((100,), epochs, learning_rate=0.02, deformation=gentle)
    trainer = Trainer(config, data, backends.get())
    trainer.run()
    print(f"test error: {trainer.state.best_metrics.test_error:.1f}%")

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "digits.npz")  # for mlpcore train --data digits.npz
        np.savez(file, X=X, y=y)
        data = dataset.load(file)
    n, n_test = len(data.train_labels), len(data.test_labels)
    print(f"{data.name}: {n} for training, {n_test} for the test")
    print(f"classes: {', '.join(data.classes)}")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
