"""Strategies of Hypothesis for the arguments of a call: most are right, some wrong in many ways."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

SCALARS = (
    *(None, True, -1, 0, 1, 2, 10, 100, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, -(2**70)),
    *(0.5, -0.5, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"), 1j),
    *("", "1", "nan", "a\nb", "x" * 1000, "\ud800", "\0", b"1", [], [1], {}, object(), len),
    *(np.float32("nan"), np.int8(-3), np.uint64(2**63), np.array(2), np.array([1, 2]), np.bool_(1)),
)

DTYPES = (
    *("f4", ">f4", "f8", "f2", "c8", "i1", "u1", "i4", ">i4", "i8", "u4", "?"),
    *("O", "U5", "S3", "M8[s]", "m8[s]", "V4"),
)

VALUES = (-1, 0, 255, 2**31 - 1, -(2**31), np.nan, np.inf, -np.inf, 3e38, 1e-45)


def with_value(a, value, place):
    result = a.copy()
    result.reshape(-1)[place] = np.array(value).astype(a.dtype)
    return result


def misaligned(a):
    result = np.zeros(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    result[...] = a
    return result


def records(a):
    result = np.zeros(a.shape, np.dtype([("tag", "u1"), ("value", a.dtype), ("end", "u1")]))
    result["value"] = a
    return result


def read_only(a):
    result = a.copy()
    result.flags.writeable = False
    return result


def repeated(a, axis, n):
    """Zeros of a very long shape, all in one place of the memory."""
    return np.broadcast_to(np.zeros((), a.dtype), (*a.shape[:axis], n, *a.shape[axis + 1 :]))


#: Ways to change an array: its shape, its type, its memory, its values, or all.
SHAPES = (
    *(lambda a: a[None], np.ravel, lambda a: a[..., None], lambda a: a[:-1], lambda a: a[:0]),
    *(lambda a: a[..., :-1], np.transpose),
)
TYPES = [partial(np.ndarray.astype, dtype=dtype) for dtype in DTYPES]
TYPES += [records, lambda a: records(a)["value"]]
MEMORY = (
    *(misaligned, read_only, np.asfortranarray, lambda a: a[::-1]),
    *(lambda a: np.repeat(a, 2, axis=-1)[..., ::2], lambda a: np.broadcast_to(a[:1], a.shape)),
)
CONTENTS = [
    partial(with_value, value=value, place=place)
    for value in VALUES
    for place in (slice(1), slice(None))
]
OTHERS = (np.ndarray.tolist, lambda a: np.ma.masked_array(a, a == a))
HUGE = [
    partial(repeated, axis=axis, n=n) for axis in (0, -1) for n in (2**31 - 2**10, 2**31, 2**40)
]
CHANGES = (SHAPES, TYPES, MEMORY, CONTENTS, OTHERS)


def overlapping(a, other):
    return other.reshape(-1)[: a.size].reshape(a.shape)


@st.composite
def spoilt(draw, arguments, changes=CHANGES):
    """Arguments by their names, of which up to two are other ones.

    An array may also share its memory with another argument.
    """
    result = dict(arguments)
    arrays = [a for a in arguments.values() if isinstance(a, np.ndarray)]
    for name in draw(st.sets(st.sampled_from(sorted(arguments)), max_size=2)):
        right = arguments[name]
        if not isinstance(right, np.ndarray):
            result[name] = draw(st.sampled_from(SCALARS))
            continue
        fitting = [a for a in arrays if a.dtype == right.dtype and a.size >= right.size]
        overlaps = [partial(overlapping, other=a) for a in fitting]
        change = draw(st.sampled_from([*changes, overlaps]).flatmap(st.sampled_from))
        with np.errstate(all="ignore"):
            result[name] = change(right)
    return result
