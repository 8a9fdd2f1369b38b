"""Arguments that a call may get: most are right, the others are wrong in one of many ways."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlpcore.typing import AnyArray

#: One in so many arguments is wrong.
WRONG = 6

SCALARS: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 10, 1000, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, -(2**70), 10**5000),
    *(0.5, -0.5, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"), 1j),
    *("", "1", "nan", "a\nb", "x" * 1000, "\ud800", "\0", b"1", [], [1], {}, object(), len),
    *(np.float32("nan"), np.int8(-3), np.uint64(2**63), np.array(2), np.array([1, 2]), np.bool_(1)),
)

DTYPES = (
    *("f4", ">f4", "f8", "f2", "c8", "i1", "u1", "i4", ">i4", "i8", "u4", "?"),
    *("O", "U5", "S3", "M8[s]", "m8[s]", "V4"),
)


def scalar(rng: random.Random, right: Callable[[], Any]) -> Any:
    """A right scalar, or a wrong one."""
    return right() if rng.randrange(WRONG) else rng.choice(SCALARS)


def array(rng: random.Random, right: AnyArray, others: Sequence[AnyArray] = ()) -> Any:
    """An array as `right`, or one that differs from it in type, shape, memory or values.

    `others` are arrays of the same call, whose memory it may share.
    """
    if rng.randrange(WRONG):
        return right
    return rng.choice(CHANGES)(rng, right, others)


def _shape(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    return rng.choice((a[None], a.ravel(), a[..., None], a[:-1], a[:0], a[..., :-1], a.T))


def _dtype(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    with np.errstate(all="ignore"):
        return a.astype(rng.choice(DTYPES))


def _record(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    records = np.zeros(a.shape, np.dtype([("tag", "u1"), ("value", a.dtype), ("end", "u1")]))
    records["value"] = a
    return rng.choice((records, records["value"]))


def _misaligned(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    memory = np.zeros(a.nbytes + 1, np.uint8)
    result = memory[1:].view(a.dtype).reshape(a.shape)
    result[...] = a
    return result


def _strides(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    twice = np.repeat(a, 2, axis=-1)[..., ::2]
    return rng.choice((twice, a[::-1], np.asfortranarray(a), np.broadcast_to(a[:1], a.shape)))


def _huge(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    axis, n = rng.randrange(a.ndim), rng.choice((2**31 - 2**10, 2**31, 2**40))
    shape = tuple(n if i == axis else length for i, length in enumerate(a.shape))
    return np.broadcast_to(np.zeros((), a.dtype), shape)


def _fixed(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    result = a.copy()
    result.flags.writeable = False
    return result


def _values(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    result = a.copy()
    if result.size:
        bad: list[float] = [-1, 0, 255, 2**31 - 1, -(2**31)]
        if result.dtype.kind == "f":
            bad += [np.nan, np.inf, -np.inf, 3e38, 1e-45]
        with np.errstate(all="ignore"):
            value = np.array(rng.choice(bad)).astype(result.dtype)
        result.reshape(-1)[rng.randrange(result.size)] = value
        if rng.randrange(3) == 0:
            result[...] = value
    return result


def _shared(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    fitting = [b for b in others if b.dtype == a.dtype and b.size >= a.size]
    return rng.choice(fitting).reshape(-1)[: a.size].reshape(a.shape) if fitting else a


def _other(rng: random.Random, a: AnyArray, others: Sequence[AnyArray]) -> Any:
    with np.errstate(all="ignore"):
        masked = np.ma.masked_array(a, mask=a == a)
    return rng.choice((a.tolist(), np.ascontiguousarray(a).data, masked, *SCALARS))


CHANGES = (
    *(_shape, _dtype, _record, _misaligned, _strides, _huge),
    *(_fixed, _values, _values, _shared, _other),
)
