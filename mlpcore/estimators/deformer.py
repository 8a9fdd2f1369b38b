"""The deformation as a transformer: scikit-learn's conventions, images in any range of values."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from mlpcore import backends
from mlpcore.backends.base import IMAGES_PER_GRID, MAX_EPOCH, MAX_IMAGES
from mlpcore.checks import check_real, check_whole
from mlpcore.data.dataset import BACKGROUND
from mlpcore.data.scaling import batches
from mlpcore.deformation.deform import deform_selected
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators.parameters import (
    are_similar,
    check_similar_labels,
    image_shape_of,
    keeps_features,
    seed_of,
    threads_of,
)
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

#: The greatest distance of a pixel's value from the background's that backends take.
GREATEST_SPAN = 2.0

#: The greatest index of an image in its training set.
MAX_INDEX = MAX_IMAGES - 1


class ElasticDeformer(
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Deforms grey-scale images at random, elastically and affinely, to augment training data.

    Each image gets its own random map (Cireşan et al. 2010, "Deforming images"). The map depends
    on the seed, the epoch and the image's index alone: not on the other images of a batch, nor
    on the number of processes or threads.

    In a `Pipeline`, the next step is trained on images that `fit_transform` deforms once;
    `transform`, which is called to predict, returns images as they are. To deform anew for every
    epoch, use the `deformation` of `OnlineMLPClassifier`, or call `deform`.

    Images have the shape (n_samples, height, width), or (n_samples, n_features) with their pixels
    row by row. Results have the same shape and type: whole numbers are rounded to the nearest,
    and no value leaves the range of its image and the background. Arithmetic is float32, so
    errors are about 1e-7 of the range of values.

    Parameters
    ----------
    sigma : float, default=6.0
        Standard deviation, in pixels, of the Gaussian that smooths the displacements. It is cut
        off at 10 pixels.
    alpha : float, default=36.0
        Scale of the displacements, in pixels, before they are smoothed; with a sigma of 6 their
        RMS is then alpha / 32. 0 means no elastic deformation.
    beta : float, default=15.0
        Greatest angle, in degrees, of a rotation or a horizontal shear, each with probability
        1/2. 0 means neither.
    gamma : float, default=15.0
        Greatest change of width and of height, in percent. 0 means no scaling.
    similar_labels : sequence, default=()
        Labels whose images get half of beta, where labels are given. The paper's are the digits
        (1, 7).
    image_shape : (int, int), default=None
        Height and width of flattened images. None stands for square ones.
    background : float, default=None
        The value around an image. None stands for the least value that `fit` sees.
    random_state : int, RandomState instance or None, default=None
        The seed, a whole number from 0 to 2**64 - 1, or what `fit` draws it from.
    backend : str, default="cpu"
        A name that `mlpcore.backends.get` knows.
    threads : int, default=None
        None takes the available cores; in a worker process, such as a PyTorch DataLoader's, its
        share of them.

    Attributes
    ----------
    background_ : float
        The value around an image.
    image_shape_ : (int, int)
        Height and width of an image.
    n_features_in_ : int
        Number of pixels of an image.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has names.

    Raises
    ------
    InputError
        A ValueError, from any method, when a parameter or images cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from mlpcore import ElasticDeformer
    >>> images = np.zeros((100, 29, 29), np.uint8)
    >>> images[:, 8:21, 8:21] = 255
    >>> deformer = ElasticDeformer(random_state=0).fit(images)
    >>> deformed = deformer.deform(images, epoch=3)
    >>> alone = deformer.deform(images[42:43], epoch=3, indices=[42])
    >>> deformed.dtype, np.array_equal(deformed[42], alone[0])
    (dtype('uint8'), True)
    """

    __module__ = "mlpcore"  # where pickles look for it; this module may move

    def __init__(
        self,
        sigma: float = 6.0,
        alpha: float = 36.0,
        beta: float = 15.0,
        gamma: float = 15.0,
        *,
        similar_labels: Sequence[Any] | AnyArray = (),
        image_shape: tuple[int, int] | None = None,
        background: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        backend: str = "cpu",
        threads: int | None = None,
    ):
        self.sigma = sigma
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.similar_labels = similar_labels
        self.image_shape = image_shape
        self.background = background
        self.random_state = random_state
        self.backend = backend
        self.threads = threads

    @keeps_features
    def fit(self, X: ArrayLike, y: object = None) -> ElasticDeformer:
        """Learns the images' shape and range of values, and draws a seed if none is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : ignored
        """
        self._parameters()
        flat = self._flat(X, reset=True)
        low, high = float(flat.min()), float(flat.max())
        background = low if self.background is None else self.background
        _check_background(background, flat.dtype)
        shape = np.shape(X)[1:]
        if len(shape) == 1 or self.image_shape is not None:
            shape = image_shape_of(self.image_shape, flat.shape[1])
            _check_shape(X, shape)
        span = float(max(high - background, background - low)) or GREATEST_SPAN
        if span > float(np.finfo(np.float32).max):
            raise InputError(f"X holds {low:g} to {high:g}: expected a range that float32 holds")
        self._seed = seed_of(self.random_state)
        self.image_shape_, self.background_ = shape, float(background)
        # A power of two, so that bytes and images in [-1, 1] keep every bit.
        self._unit = 2.0 ** math.ceil(math.log2(span / GREATEST_SPAN))
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> AnyArray:
        """Fits, then deforms X with labels y as `deform` does in epoch 0."""
        return self.fit(X).deform(X, y)

    def transform(self, X: ArrayLike) -> AnyArray:
        """The images as they are: only the images that a model is trained on are deformed."""
        check_is_fitted(self, "image_shape_")
        return self._flat(X, reset=False).reshape(np.shape(X))

    def deform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epoch: int = 0,
        indices: ArrayLike | None = None,
    ) -> AnyArray:
        """Deformed images, an array of the same shape and type.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            Labels, for `similar_labels`. Without labels no image is similar.
        epoch : int, default=0
            Which of an image's random maps to use, 0 to 2**32 - 1.
        indices : array-like of int of shape (n_samples,), default=None
            Places of the images in the training set, 0 to 2**31 - 1, in any order; None counts
            from 0. Consecutive ones are fastest.
        """
        check_is_fitted(self, "image_shape_")
        parameters = self._parameters()
        check_whole("epoch", epoch, 0, MAX_EPOCH)
        flat = self._flat(X, reset=False)
        _check_background(self.background_, flat.dtype)
        n, n_pixels = flat.shape
        indices, similar = _checked_indices(indices, n), self._are_similar(y, n)
        grids = -(-n // IMAGES_PER_GRID)  # a thread computes one at a time
        backend = backends.get(self.backend, threads_of(self.threads, grids))
        result = np.empty_like(flat)
        for part in batches(n, n_pixels):
            images, places, labels = self._to_unit(flat[part]), indices[part], similar[part]
            shown = deform_selected(
                images, places, labels, parameters, self._seed, int(epoch), backend
            )
            result[part] = self._from_unit(shown, flat[part])
        return result.reshape(np.shape(X))

    def _parameters(self) -> DeformationParameters:
        """Parameters for labels of 1, the similar ones, and 0, as `_are_similar` gives them."""
        check_similar_labels(self.similar_labels)
        return DeformationParameters(self.sigma, self.alpha, self.beta, self.gamma, (1,))

    def _are_similar(self, y: ArrayLike | None, n: int) -> UInt8Array:
        """1 for each of n images whose label is a similar one, 0 for the others."""
        if y is None:
            return np.zeros(n, np.uint8)
        labels = column_or_1d(y)
        if len(labels) != n:
            raise InputError(f"y holds {len(labels)} labels, expected {n} for as many images")
        return are_similar(labels, self.similar_labels).astype(np.uint8)

    def _flat(self, X: Any, reset: bool) -> AnyArray:
        """Images as (n_samples, n_features), checked."""
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)
        if getattr(X, "ndim", 2) > 3:
            raise InputError(f"X has shape {X.shape}, expected (n, h, w) or (n, n_features)")
        if getattr(X, "ndim", 2) == 3:
            if not reset:
                _check_shape(X, self.image_shape_)
            X = np.reshape(X, (len(X), math.prod(X.shape[1:])))
        flat = validate_data(self, X, dtype="numeric", order="C", reset=reset)
        if flat.dtype.kind not in "iuf":
            raise InputError(f"X has type {flat.dtype}, expected whole or real numbers")
        return flat

    def _to_unit(self, flat: AnyArray) -> Float32Array:
        """Images (n, n_features) as backends take them: (n, h, w), float32, background -1."""
        inside = (flat.astype(np.float64) - self.background_) / self._unit + BACKGROUND
        return inside.astype(np.float32).reshape(len(flat), *self.image_shape_)

    def _from_unit(self, shown: Float32Array, flat: AnyArray) -> Float64Array:
        """The inverse of `_to_unit`, within the range of each image of `flat` and background."""
        values = (shown.reshape(flat.shape).astype(np.float64) - BACKGROUND) * self._unit
        values += self.background_
        if flat.dtype.kind != "f":
            np.rint(values, out=values)
        low = np.minimum(flat.min(axis=1, keepdims=True), self.background_)
        high = np.maximum(flat.max(axis=1, keepdims=True), self.background_)
        return np.clip(values, low, high, out=values)


def _check_shape(X: ArrayLike, expected: tuple[int, int]) -> None:
    """Raises InputError if X holds images (n, h, w) of another shape."""
    shape = np.shape(X)
    if len(shape) == 3 and shape[1:] != expected:
        sides = f"{expected[0]} x {expected[1]}"
        raise InputError(f"X holds images of {shape[1]} x {shape[2]}, expected {sides}")


def _check_background(background: Any, dtype: np.dtype[Any]) -> None:
    """Raises InputError unless the value can be around images of this type."""
    check_real("background", background)
    if dtype.kind == "f":
        limit = float(np.finfo(np.float32).max)
        low, high, kind = -limit, limit, "a finite number"
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        kind = f"a whole number from {low} to {high:,} for images of {dtype}"
    if not low <= background <= high or (dtype.kind != "f" and background % 1):
        raise InputError(f"background {reprlib.repr(background)}: expected {kind}")


def _checked_indices(indices: ArrayLike | None, n: int) -> AnyArray:
    """Indices of n images, (n,) int64."""
    given = np.arange(n) if indices is None else np.asarray(indices)
    whole = given.shape == (n,) and given.dtype.kind in "iu"
    if not whole or given.min() < 0 or given.max() > MAX_INDEX:
        raise InputError(
            f"indices {reprlib.repr(given.tolist())}: expected {n} whole numbers "
            f"from 0 to {MAX_INDEX:,}, one for each image"
        )
    return given.astype(np.int64)
