"""Small data sets in IDX files, written without `mlpcore.data.idx`."""

import gzip
import struct
from pathlib import Path

import numpy as np

from mlpcore.data.idx import FILES


def idx_bytes(array):
    """An IDX file of labels (n,) or images (n, h, w)."""
    magic = {1: 0x801, 3: 0x803}[array.ndim]
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def zipped(content):
    """Gzipped without the time of day, so that every run sees the same bytes."""
    return gzip.compress(content, mtime=0)


def small_set(height=4, width=5):
    """The arrays of 12 training and 6 test images of 3 classes, by the names of their files."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (18, height, width), dtype=np.uint8)
    labels = np.arange(18, dtype=np.uint8) % 3
    return dict(zip(FILES, (pixels[:12], labels[:12], pixels[12:], labels[12:])))


def write_set(folder, arrays):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in arrays.items():
        (folder / file).write_bytes(idx_bytes(array))
    return folder
