"""What parameters in scikit-learn's manner mean here: seeds, threads, image shapes, labels.

And what a fit that is refused must leave as it was.
"""

from __future__ import annotations

import contextlib
import math
import reprlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.base import MAX_SIDE
from mlpcore.backends.simd import MAX_THREADS
from mlpcore.checks import check_whole
from mlpcore.cpu import cores_beside_others
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, UInt8Array


@contextlib.contextmanager
def features_kept(estimator: object) -> Iterator[None]:
    """Puts back what an estimator knows of its features if what is done within fails.

    scikit-learn's `validate_data` sets it before anything else is checked.
    """
    names, values = ("n_features_in_", "feature_names_in_"), vars(estimator)
    before = {name: values[name] for name in names if name in values}
    try:
        yield
    except BaseException:
        for name in names:
            values.pop(name, None)
        values.update(before)
        raise


def seed_of(random_state: Any) -> int:
    """The seed, 0 to 2**64 - 1: a whole number itself, else one drawn from a generator.

    Raises
    ------
    InputError
        When it is neither a whole number in range nor None nor a numpy.random.RandomState.
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**63, dtype=np.int64))
    check_whole("random_state", random_state, 0, 2**64 - 1)
    return int(random_state)


def threads_of(threads: Any, worth: int) -> int:
    """As many threads as asked for; None stands for as many as are worth it and ours to use.

    Raises
    ------
    InputError
        When the number asked for is not from 1 to `MAX_THREADS`.
    """
    if threads is None:
        return min(worth, cores_beside_others()) if worth > 1 else 1
    check_whole("threads", threads, 1, MAX_THREADS)
    return int(threads)


def image_shape_of(image_shape: Any, n_features: int) -> tuple[int, int]:
    """Height and width of images of so many pixels; None stands for a square.

    Raises
    ------
    InputError
        When the shape is not that of so many pixels, or None and they make no square.
    """
    if image_shape is None:
        side = math.isqrt(n_features)
        if side * side != n_features:
            raise InputError(
                f"image_shape None: {n_features} features make no square, expected (height, width)"
            )
        image_shape = side, side
    try:
        height, width = image_shape
    except (TypeError, ValueError):
        raise InputError(f"image_shape {image_shape!r}: expected (height, width)") from None
    for name, side in (("height", height), ("width", width)):
        check_whole(f"image_shape: {name}", side, 1, MAX_SIDE)
    if height * width != n_features:
        raise InputError(
            f"image_shape {height} x {width}: {height * width} pixels, expected {n_features}, "
            "as many as there are features"
        )
    return int(height), int(width)


def are_similar(labels: AnyArray, similar_labels: Any) -> NDArray[np.bool_]:
    """Which labels (n,) are among the similar ones, (n,) bool; "7" is the same label as 7.

    Raises
    ------
    InputError
        When the similar ones are no list of labels.
    """
    if isinstance(similar_labels, str) or not isinstance(similar_labels, Collection):
        raise InputError(f"similar_labels {similar_labels!r}: expected a list of labels")
    similar = list(similar_labels)
    texts = {str(label) for label in similar}
    return np.array(
        [label in similar or str(label) in texts for label in labels.tolist()], dtype=bool
    )


def check_classes(classes: ArrayLike, name: str) -> AnyArray:
    """The classes, sorted and each once, if a network and labels of one byte tell them apart.

    Raises
    ------
    InputError
        When there are not 2 to 256, what is called `name` having them.
    """
    classes = np.unique(classes)
    if len(classes) == 1:
        raise InputError(f"{name} holds one class, {classes.tolist()[0]!r}: expected 2 or more")
    if len(classes) > N_LABELS:
        raise InputError(f"{name} holds {len(classes):,} classes: expected {N_LABELS} or fewer")
    return classes


def encode(classes: AnyArray, y: AnyArray) -> UInt8Array:
    """Labels (n,) as their places among the classes.

    Raises
    ------
    InputError
        When one of them is none.
    """
    labels, places = np.unique(y, return_inverse=True)
    codes = {label: i for i, label in enumerate(classes.tolist())}
    for label in labels.tolist():
        if label not in codes:
            raise InputError(f"y holds {label!r}: expected one of {reprlib.repr(list(codes))}")
    return np.array([codes[label] for label in labels.tolist()], np.uint8)[places]
