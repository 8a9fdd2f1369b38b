"""Parameters and labels in scikit-learn's conventions, converted to this package's.

Each function raises an InputError that names the parameter if it cannot be used.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.arguments import MAX_SIDE
from mlpcore.backends.simd import MAX_THREADS
from mlpcore.checks import check_rate, check_real, check_whole
from mlpcore.cpu import cores_beside_others
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network.architecture import MAX_WIDTH, parse_hidden_layers
from mlpcore.training.schedule import MAX_EPOCHS
from mlpcore.typing import AnyArray, UInt8Array


def check_parameters(mlp: Any, parts: bool = False) -> None:
    """Checks parameters of a classifier that nothing else checks by their names here.

    `parts` is whether it trains in parts, without knowing all samples.
    """
    check_whole("max_iter", mlp.max_iter, 1, MAX_EPOCHS)
    check_rate("learning_rate_init", mlp.learning_rate_init)
    if mlp.learning_rate_end is not None:
        check_rate("learning_rate_end", mlp.learning_rate_end)
    check_rate("learning_rate_ratio", mlp.learning_rate_ratio)
    check_real("validation_fraction", mlp.validation_fraction)
    if not 0 < mlp.validation_fraction < 1:
        raise InputError(
            f"validation_fraction {mlp.validation_fraction}: expected a share between 0 and 1"
        )
    check_whole("n_iter_no_change", mlp.n_iter_no_change, 1, MAX_EPOCHS)
    check_real("tol", mlp.tol)
    if parts and mlp.early_stopping:
        raise InputError(
            f"early_stopping {mlp.early_stopping!r}: expected False for partial_fit, which does "
            "not know all samples"
        )
    if parts and isinstance(mlp.class_weight, str):
        raise InputError(
            f"class_weight {mlp.class_weight!r}: expected None or a dictionary for partial_fit, "
            "which does not know all samples"
        )


def seed_of(random_state: Any) -> int:
    """The seed, 0 to 2**64 - 1: a whole number itself, or one drawn from a RandomState.

    None stands for NumPy's global RandomState.
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**63, dtype=np.int64))
    check_whole("random_state", random_state, 0, 2**64 - 1)
    return int(random_state)


def threads_of(threads: Any, useful: int) -> int:
    """The number of threads; None stands for the useful number, but no more than our cores."""
    if threads is None:
        return min(useful, cores_beside_others()) if useful > 1 else 1
    check_whole("threads", threads, 1, MAX_THREADS)
    return int(threads)


def image_shape_of(image_shape: Any, n_features: int) -> tuple[int, int]:
    """Height and width of images with this many pixels; None stands for a square."""
    side = math.isqrt(n_features)
    wrong = InputError(
        f"image_shape {reprlib.repr(image_shape)}: expected (height, width) of images with "
        f"{n_features} pixels, as many as there are features, or None if they are square"
    )
    try:
        height, width = (side, side) if image_shape is None else image_shape
    except (TypeError, ValueError):
        raise wrong from None
    for name, length in (("height", height), ("width", width)):
        check_whole(f"image_shape: {name}", length, 1, MAX_SIDE)
    if height * width != n_features:
        raise wrong
    return int(height), int(width)


def hidden_layers_of(hidden_layer_sizes: Any) -> tuple[int, ...]:
    """Neurons of each hidden layer, from a number, a sequence or the name of an architecture."""
    if isinstance(hidden_layer_sizes, str):
        return parse_hidden_layers(hidden_layer_sizes)
    several = isinstance(hidden_layer_sizes, (Sequence, np.ndarray))
    sizes = tuple(hidden_layer_sizes) if several else (hidden_layer_sizes,)
    for size in sizes:
        check_whole("hidden_layer_sizes", size, 1, MAX_WIDTH)
    return sizes


def deformation_of(deformation: Any, classes: AnyArray) -> DeformationParameters:
    """The deformation, its similar labels replaced by their places among the classes."""
    if deformation is None:
        return IDENTITY
    if not isinstance(deformation, DeformationParameters):
        raise InputError(f"deformation {deformation!r}: expected DeformationParameters or None")
    check_similar_labels(deformation.similar_labels)
    similar = np.flatnonzero(are_similar(classes, deformation.similar_labels))
    return dataclasses.replace(deformation, similar_labels=tuple(similar.tolist()))


def check_similar_labels(similar_labels: Any) -> None:
    """Raises InputError unless this is a list of labels."""
    if isinstance(similar_labels, str) or not isinstance(similar_labels, Collection):
        raise InputError(f"similar_labels {similar_labels!r}: expected a list of labels")


def are_similar(labels: AnyArray, similar_labels: Collection[Any]) -> NDArray[np.bool_]:
    """Which labels (n,) are among the similar ones, (n,) bool; "7" is the same label as 7."""
    similar = list(similar_labels)
    texts = {str(label) for label in similar}
    return np.array([label in similar or str(label) in texts for label in labels.tolist()], bool)


def check_classes(classes: ArrayLike, name: str) -> AnyArray:
    """The distinct classes, sorted, if there are 2 or more and a byte can number them."""
    classes = np.unique(classes)
    if not 2 <= len(classes) <= N_LABELS:
        number = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
        raise InputError(f"{name} holds {number}: expected 2 to {N_LABELS}")
    return classes


def known_classes(classes: ArrayLike | None, known: AnyArray | None) -> AnyArray:
    """The classes of a `partial_fit`: those given, those of the training before it, or both.

    If both are there, they must be the same.
    """
    if classes is None:
        if known is None:
            raise InputError("classes None: expected all labels in the first partial_fit")
        return known
    given = check_classes(classes, "classes")
    if known is not None and not np.array_equal(given, known):
        texts = reprlib.repr(given.tolist()), reprlib.repr(known.tolist())
        raise InputError(f"classes {texts[0]}: expected None or the known ones, {texts[1]}")
    return given


def encode(classes: AnyArray, y: AnyArray) -> UInt8Array:
    """The place of each label of y (n,) among the classes."""
    codes = {label: code for code, label in enumerate(classes.tolist())}
    try:
        return np.array([codes[label] for label in y.tolist()], np.uint8)
    except KeyError as error:
        known = reprlib.repr(list(codes))
        raise InputError(f"y holds {error.args[0]!r}: expected one of {known}") from None
