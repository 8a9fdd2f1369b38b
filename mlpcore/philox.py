"""Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11, "Random123").

The seed and the purpose of a random number determine it. So any backend, with any number of
threads, can draw any image of any epoch again by itself.

| the four counter words | what they draw |
|---|---|
| block, layer, 0, 4 | initial weights, then biases, of a layer: four a block |
| image, 0, epoch, 3 | deformation of an image, or of a place in an epoch: angle, coin, scales |
| image, block, 0, 6 | strokes on an image: four numbers a block |
| image, 0, epoch, 5 | sort key of an image (two words) in the epoch's order |
| cell, grid, epoch, 1 | displacement noise for x; cell = ((y // 4) << 16) + x, word y % 4 |
| cell, grid, epoch, 2 | displacement noise for y, likewise |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mlpcore.checks import check_whole
from mlpcore.typing import (
    AnyArray,
    ArrayLike,
    Float32Array,
    Float64Array,
    Int32Array,
    UInt32Array,
    UInt64Array,
)

NOISE_X, NOISE_Y, AFFINE, WEIGHTS, ORDER, STROKES = 1, 2, 3, 4, 5, 6

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF
_FEW = 8  # counters that plain integers handle faster than arrays do
_AT_ONCE = 1 << 16  # counters of one draw, whose 64-bit words stay in the cache


def split_seed(seed: int) -> tuple[int, int]:
    """Return the two 32-bit key words of a seed of 64 bits, the low word first."""
    check_whole("seed", seed, 0, 2**64 - 1)
    seed = int(seed)  # an integer of NumPy would overflow
    return seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF


def philox4x32(counter: ArrayLike, seed: int) -> UInt32Array:
    """Return the random words of counters.

    Parameters
    ----------
    counter
        (..., 4) unsigned integers below 2**32.
    seed
        The key, 0 <= seed < 2**64.

    Returns
    -------
    (..., 4) uint32, uniform over all 32-bit words.
    """
    counter = np.asarray(counter, dtype=np.uint64)
    key = split_seed(seed)
    if counter.size <= 4 * _FEW:
        rows = [_rounds(row, key) for row in counter.reshape(-1, 4).tolist()]
        return np.array(rows, np.uint32).reshape(counter.shape)
    words = _rounds(np.moveaxis(counter, -1, 0), key)
    return np.stack(words, axis=-1).astype(np.uint32)


def _rounds(counter: Iterable[Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """The words of a counter of four words, each an integer or an array uint64."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & _LOW,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


def counters(first: ArrayLike, second: int, third: int, purpose: int) -> UInt64Array:
    """Return (len(first), 4) counters that differ in their first word."""
    first = np.asarray(first, dtype=np.uint64)
    result = np.empty((first.size, 4), dtype=np.uint64)
    result[:, 0] = first
    result[:, 1:] = second, third, purpose
    return result


def to_uniform(words: AnyArray) -> Float64Array:
    """Return words as float64 in [-1, 1): as signed integers over 2**31."""
    return words.astype(np.uint32).view(np.int32) / 2.0**31


def permutation(n: int, seed: int, epoch: int) -> Int32Array:
    """Return the order, (n,) int32, in which an epoch presents its `n` images.

    >>> permutation(6, seed=1, epoch=0)
    array([4, 2, 3, 0, 1, 5], dtype=int32)
    """
    keys = np.empty(n, np.uint64)
    for begin in range(0, n, _AT_ONCE):
        part = np.arange(begin, min(begin + _AT_ONCE, n))
        words = philox4x32(counters(part, 0, epoch, ORDER), seed).astype(np.uint64)
        keys[part] = words[:, 0] << 32 | words[:, 1]
    return np.argsort(keys, kind="stable").astype(np.int32)


def initial_values(n: int, seed: int, layer: int) -> Float32Array:
    """Return `n` float32 values, uniform in [-1, 1], for the weights and biases of a layer."""
    values = np.empty(n, dtype=np.float32)
    for begin in range(0, n, 4 * _AT_ONCE):
        end = min(begin + 4 * _AT_ONCE, n)
        blocks = np.arange(begin // 4, (end + 3) // 4)
        words = philox4x32(counters(blocks, layer, 0, WEIGHTS), seed)
        values[begin:end] = to_uniform(words).ravel()[: end - begin]
    return values


def noise(seed: int, epoch: int, grid: int, purpose: int, rows: int, columns: int) -> Float32Array:
    """Return (rows, columns) float32 displacement noise in [-1, 1] for a grid of images.

    `purpose` is `NOISE_X` or `NOISE_Y`.
    """
    groups = np.arange((rows + 3) // 4, dtype=np.uint64)
    cells = (groups[:, None] << np.uint64(16)) | np.arange(columns, dtype=np.uint64)
    words = philox4x32(counters(cells.ravel(), grid, epoch, purpose), seed)
    words = words.reshape(len(groups), columns, 4).transpose(0, 2, 1)
    signed = np.ascontiguousarray(words).reshape(-1, columns)[:rows].view(np.int32)
    return signed.astype(np.float32) * np.float32(2.0**-31)
