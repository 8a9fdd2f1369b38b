"""The 8x8 digits that come with scikit-learn, in the format of MNIST's."""

from __future__ import annotations

import numpy as np

from mlpcore.data.scaling import BACKGROUNDS, normalise, resize
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

#: Sides of an image, its greatest value, and the rows and columns of 29 x 29 pixels that it fills.
SIDES, WHITE, BOX = (8, 8), 16, slice(4, 25)


def read_digits() -> tuple[Float32Array, UInt8Array, AnyArray]:
    """Return images (n, 29, 29), labels (n,), and which are for the test (n,).

    Every fifth sample of each digit is a test image: always the same 1,442 images for training and
    355 for the test.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    labels = digits.target.astype(np.uint8)
    test = np.zeros(len(labels), bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[4::5]] = True
    return to_images(digits.images), labels, test


def to_images(pixels: AnyArray) -> Float32Array:
    """Return pixels (n, 8, 8) from 0 to 16 as images (n, 29, 29) in [-1, 1].

    MNIST's digits fill 20x20 of 28x28 pixels, and deformations need the margin. So these become
    21x21 in the middle.
    """
    images = np.full((len(pixels), 29, 29), BACKGROUNDS["signed"], np.float32)
    box = images[:, BOX, BOX]
    box[...] = resize(normalise(pixels * (255 / WHITE)), *box.shape[1:])
    return images
