"""Parameters, labels and samples in scikit-learn's conventions, converted to this package's.

Each function raises a ValueError that names what cannot be used.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import is_regressor
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import row_norms
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, validate_data

from mlpcore.backends.affine import N_LABELS
from mlpcore.backends.arguments import MAX_SIDE
from mlpcore.backends.simd import MAX_THREADS
from mlpcore.checks import check_array_like, check_whole, real_array
from mlpcore.cpu import cores_beside_others
from mlpcore.data.arrays import check_lossless
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters
from mlpcore.errors import InputError, brief
from mlpcore.typing import AnyArray, Float32Array, UInt8Array

#: Features beyond this root mean square are not scaled. Whole units of a measurement, such as
#: centimetres of a petal or grey levels up to 16, stay below and are learnt well enough.
FAR_OUTSIDE = 10.0


# ---- parameters --------------------------------------------------------------------------


def can_train_in_parts(mlp: Any) -> bool:
    """True, or an InputError if `partial_fit` would need to know all samples."""
    needs = {"early_stopping": mlp.early_stopping, "class_weight": mlp.class_weight == "balanced"}
    for name, needed in needs.items():
        if needed:
            raise InputError(
                f"{name} {getattr(mlp, name)!r}: partial_fit does not know all samples"
            )
    return True


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
    shape = (side, side) if image_shape is None else image_shape
    for length in shape if np.shape(shape) == (2,) else ():
        check_whole("image_shape: side", length, 1, MAX_SIDE)
    if np.shape(shape) != (2,) or math.prod(shape) != n_features:
        raise InputError(
            f"image_shape {brief(image_shape)}: expected (height, width) of images with "
            f"{n_features} pixels, as many as there are features, or None if they are square"
        )
    return int(shape[0]), int(shape[1])


def deformation_of(deformation: Any, classes: AnyArray) -> DeformationParameters:
    """The deformation, its similar labels replaced by their places among the classes."""
    if deformation is None:
        return IDENTITY
    if not isinstance(deformation, DeformationParameters):
        raise InputError(f"deformation {deformation!r}: expected DeformationParameters or None")
    similar = np.flatnonzero(are_similar(classes, deformation.similar_labels))
    return structs.replace(deformation, similar_labels=tuple(similar.tolist()))


# ---- labels ------------------------------------------------------------------------------


def check_similar_labels(similar_labels: Any) -> None:
    """Raises InputError unless this is a list of labels."""
    if isinstance(similar_labels, str) or not isinstance(similar_labels, Collection):
        raise InputError(f"similar_labels {similar_labels!r}: expected a list of labels")


def are_similar(labels: AnyArray, similar_labels: Any) -> NDArray[np.bool_]:
    """A mask, (n,) bool, of the labels (n,) that are similar ones; "7" is the same label as 7."""
    check_similar_labels(similar_labels)
    similar = list(similar_labels)
    texts = {str(label) for label in similar}
    return np.array([label in similar or str(label) in texts for label in labels.tolist()], bool)


def classes_of(labels: Any, name: str) -> AnyArray:
    """The classes, sorted, of all labels (n,), if a byte can number them; columns of a matrix."""
    if n := n_columns(labels):
        return np.arange(n)
    classes: AnyArray = unique_labels(labels)
    if not 2 <= len(classes) <= N_LABELS:
        number = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
        raise InputError(f"{name} holds {number}: expected 2 to {N_LABELS}")
    return classes


def encode(codes: Mapping[Any, int], labels: ArrayLike) -> UInt8Array:
    """The place of each label (n,) among the classes."""
    listed: Any = labels
    if not isinstance(labels, list):
        array = np.asarray(labels)
        if n_columns(array):
            raise InputError(f"y has the shape {array.shape}: expected labels (n,), as before")
        listed = array.tolist()
    try:
        return np.array([codes[label] for label in listed], np.uint8)
    except KeyError as error:
        known = brief(list(codes))
        raise InputError(f"y holds {error.args[0]!r}: expected one of {known}") from None


def n_columns(y: Any) -> int:
    """How many columns y has, one for each label that a sample may have; 0 of labels (n,)."""
    try:
        y = y if hasattr(y, "shape") else np.asarray(y)
    except ValueError:
        raise InputError("y holds rows of different lengths: expected labels (n,)") from None
    shape, dtype = y.shape, getattr(y, "dtype", None)
    if len(shape) != 2 or shape[1] == 1:
        return 0
    if getattr(dtype, "kind", "") in ("U", "S"):
        raise InputError("y holds rows of texts: expected labels (n,), or a matrix of 0 and 1")
    return int(shape[1])


def indicator(y: Any, n_labels: int) -> Float32Array:
    """A matrix (n, n_labels) of 0 and 1, which says which labels each sample has."""
    matrix = real_array("y", y)
    if matrix.shape[1:] != (n_labels,):
        raise InputError(f"y has the shape {matrix.shape}: expected {n_labels} columns, as before")
    wrong = matrix[(matrix != 0) & (matrix != 1)]
    if len(wrong):
        raise InputError(f"y holds {wrong[0]:g}: expected 0 and 1 in a matrix of labels")
    return matrix.astype(np.float32)


# ---- samples -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Samples:
    """Inputs (n, n_features), targets, and weights (n,) if there are any.

    The inputs are an array, or a sparse matrix in canonical compressed sparse rows. Targets are the
    places of the classes (n,), or numbers (n, n_outputs), float32; then `moments` are what is known
    of them after the last one of a stream.
    """

    inputs: Float32Array
    targets: AnyArray
    weights: Float32Array | None
    moments: Any = None

    def with_mean_weight_1(self) -> Samples:
        """The same with weights of the same ratios, whose mean is 1."""
        if self.weights is None:
            return self
        mean = self.weights.mean(dtype=np.float64)
        return dataclasses.replace(self, weights=(self.weights / mean).astype(np.float32))

    def split(self, fraction: float, seed: int) -> tuple[Samples, Samples]:
        """Two parts, with the same shares of the classes; the second has this fraction of all.

        It has one sample or more of each class, or two numbers, which have a variance.
        """
        places, stratify = np.arange(len(self.targets)), None
        least = 2
        if self.targets.ndim == 1:
            stratify, least = self.targets, len(np.unique(self.targets))
        size = max(math.ceil(fraction * len(places)), least)
        try:
            parts = train_test_split(
                places, test_size=size, random_state=seed % 2**32, stratify=stratify
            )
        except ValueError as error:
            raise InputError(
                f"validation_fraction of {fraction} of {len(places)} samples: expected enough for "
                f"both parts; {error}"
            ) from None
        return self._part(parts[0]), self._part(parts[1])

    def _part(self, places: AnyArray) -> Samples:
        """Some of the samples, in the order that they have here."""
        places = np.sort(places)
        weights = None if self.weights is None else self.weights[places]
        if weights is not None and not weights.any():
            raise InputError(
                "sample_weight: all are zero in a part of early_stopping's split, expected "
                "some weight in both; another random_state splits differently"
            )
        return Samples(self.inputs[places], self.targets[places], weights)


def validated(mlp: Any, X: Any, *y: Any, reset: bool = False, **settings: Any) -> Any:
    """X as float32, and y if it is given, as scikit-learn checks them."""
    check_array_like("X", X)
    if issparse(X):
        X = sound("X", X)
    settings |= {"dtype": np.float32, "order": "C", "accept_sparse": "csr"}
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite then is refused
        return validate_data(mlp, X, *y, reset=reset, **settings)


def sound(name: str, matrix: Any) -> Any:
    """A compressed sparse matrix, checked before C code, SciPy's too, reads what it says."""
    if not hasattr(matrix, "check_format"):
        matrix = matrix.copy().tocsr()  # `copy` checks the places, too
    indptr = matrix.indptr
    for each in (indptr, matrix.indices):
        if each.dtype not in (np.int32, np.int64):  # SciPy's check would wrap or round others
            raise InputError(
                f"{name} is a sparse matrix with indices of the type {each.dtype}: expected int32 "
                "or int64, as SciPy makes them"
            )
    if (indptr[1:] < indptr[:-1]).any():  # SciPy's check overflows, and needs an entry
        raise InputError(
            f"{name} is a sparse matrix whose indptr decreases: expected an ascending one"
        )
    matrix.check_format(full_check=True)
    return matrix


def canonical(X: Any) -> Any:
    """A sparse matrix with ascending indices, each once, in each row; an array itself."""
    if not issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()  # the matrix may be the caller's
    X.sum_duplicates()
    return X


def check_samples(mlp: Any, X: Any, y: Any, reset: bool) -> tuple[Float32Array, AnyArray]:
    """Inputs (n, n_features), and labels or numbers (n,) or (n, n_outputs), to train on."""
    if y is not None:  # which scikit-learn refuses
        check_array_like("y", y)
    if issparse(y):
        y = sound("y", y).toarray()
    given, is_regression = y, is_regressor(mlp)
    of_y = {"multi_output": is_regression or n_columns(y) > 0, "y_numeric": is_regression}
    X, y = validated(mlp, X, y, reset=reset, **of_y)
    if not is_regression:
        if isinstance(given, list) and y.ndim == 1:
            check_lossless("y", y, given)
        try:
            check_classification_targets(y)
        except TypeError as error:
            raise InputError(f"y: {error}; expected labels that can be sorted") from None
    if issparse(X):
        if mlp.deformation is not None:
            raise InputError("X is a sparse matrix: expected an array of images for a deformation")
        X = canonical(X)
    elif mlp.deformation is not None and np.abs(X).max() > 1 + 1e-6:  # float32's rounding
        far = X.flat[np.abs(X).argmax()]
        raise InputError(f"X holds {far:.4g}: expected images in [-1, 1] for a deformation")
    norms = row_norms(X.T)
    greatest = norms.max(initial=0.0) / math.sqrt(X.shape[0])
    if greatest > FAR_OUTSIDE:
        size = "more than 1e19" if np.isinf(greatest) else f"{greatest:.4g}"  # too much to square
        warnings.warn(
            f"X is far outside [-1, 1]: feature {norms.argmax()} has a root mean square of "
            f"{size}. Training may fail. Scale X first, for example with "
            f"make_pipeline(StandardScaler(), {type(mlp).__name__}()).",
            stacklevel=4,  # of who called fit
        )
    return X, y


def float_rows(X: Any, mlp: Any) -> Float32Array | None:
    """X as float32 if it is a finite array of floats with the known features, else None.

    For such an array, scikit-learn's checks, which take longer than a small network, find nothing.
    """
    if (
        type(X) is not np.ndarray
        or X.dtype.kind != "f"
        or X.shape[1:] != (mlp.n_features_in_,)
        or not len(X)
        or hasattr(mlp, "feature_names_in_")
    ):
        return None
    rows = np.ascontiguousarray(X, dtype=np.float32)
    return rows if np.isfinite(rows).all() else None


@np.errstate(over="ignore")  # what is too large becomes infinite, and is refused
def weights_of(
    sample_weight: Any, class_weight: Any, classes: AnyArray, y: AnyArray
) -> Float32Array | None:
    """Weights (n,) of samples with these labels, each the sample's weight times that of its class.

    None if all are 1 by default.
    """
    if sample_weight is None and class_weight is None:
        return None
    if sample_weight is not None:
        check_array_like("sample_weight", sample_weight)
    weights = _check_sample_weight(sample_weight, y, dtype=np.float32, ensure_non_negative=True)
    if class_weight is not None:
        weighted = np.unique(y) if isinstance(class_weight, str) else classes
        factors = compute_class_weight(class_weight, classes=weighted, y=y).astype(np.float32)
        weights = weights * factors[np.searchsorted(weighted, y)]
    if not weights.any():
        raise InputError("sample_weight and class_weight: all weights are zero, expected some more")
    return _check_sample_weight(weights, y, dtype=np.float32, ensure_non_negative=True)
