"""The deformation in scikit-learn's manner: images in any range of values, as a transformer."""

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
from mlpcore.deformation.deform import DeformationParameters, deform_selected
from mlpcore.errors import InputError
from mlpcore.estimators.parameters import (
    are_similar,
    features_kept,
    image_shape_of,
    seed_of,
    threads_of,
)
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: The greatest distance of a pixel's value from the background's, as the backends take them.
GREATEST_SPAN = 2.0

#: Of an image in its training set.
MAX_INDEX = MAX_IMAGES - 1


class ElasticDeformer(
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Deforms grey-scale images at random, elastically and affinely, to augment training data.

    Each image gets a random map of its own (Cireşan et al. 2010, "Deforming images"), a function
    of the seed, the epoch and the image's index alone: not of the other images of a batch, nor
    of how many processes or threads share the work.

    In a `Pipeline`, `fit_transform` deforms what the next step is trained on, once, and
    `transform`, which is called to predict, returns images as they are. To deform anew for
    every epoch, use the `deformation` of `OnlineMLPClassifier`, or call `deform`.

    Images are of shape (n_samples, height, width), or (n_samples, n_features) with their pixels
    row by row, and so is what comes back, of the same type: whole numbers are rounded to the
    nearest, and no value leaves the range of its image and the background. Arithmetic is
    float32: errors are some 1e-7 of the range of values.

    Parameters
    ----------
    sigma : float, default=6.0
        Standard deviation, in pixels, of the Gaussian that smooths the displacements; it is
        cut off at 10 pixels.
    alpha : float, default=36.0
        Scale of the displacements, in pixels, before they are smoothed: with sigma 6 an RMS
        displacement of alpha / 32. 0 is not elastic.
    beta : float, default=15.0
        Greatest angle, in degrees, of a rotation or, on the toss of a coin, a horizontal
        shear. 0 does neither.
    gamma : float, default=15.0
        Greatest change of width and of height, in percent. 0 does not scale.
    similar_labels : sequence, default=()
        Labels whose images are turned or sheared by half as much, where labels are given: the
        paper's are the digits (1, 7).
    image_shape : (int, int), default=None
        Height and width of flattened images. None means that they are square.
    background : float, default=None
        What an image is surrounded by. None takes the least value that `fit` sees.
    random_state : int, RandomState instance or None, default=None
        The seed, a whole number from 0 to 2**64 - 1, or what `fit` draws it from.
    backend : str, default="cpu"
        What computes: any of `mlpcore.backends.get`.
    threads : int, default=None
        None takes the available cores, and in worker processes, such as a PyTorch
        DataLoader's, the worker's share of them.

    Attributes
    ----------
    background_ : float
        What images are surrounded by.
    image_shape_ : (int, int)
        Height and width of an image.
    n_features_in_ : int
        Pixels of an image.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has some.

    Raises
    ------
    InputError
        A ValueError, from `fit` and the other methods, when a parameter or images cannot be
        used.

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

    background_: float
    image_shape_: tuple[int, int]
    _seed: int
    _unit: float

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

    def fit(self, X: ArrayLike, y: object = None) -> ElasticDeformer:
        """Learns the shape of the images, their range of values and, if need be, a seed.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : ignored

        Returns
        -------
        The transformer itself.
        """
        with features_kept(self):
            return self._fit(X)

    def _fit(self, X: Any) -> ElasticDeformer:
        self._parameters()
        flat, shape = self._flat(X, reset=True)
        low, high = float(flat.min()), float(flat.max())
        background = low if self.background is None else self.background
        check_real("background", background)
        try:
            finite = math.isfinite(background)
        except OverflowError:  # of a whole number
            finite = False
        if not finite:
            raise InputError(f"background {reprlib.repr(background)}: expected a finite number")
        self._check_background(background, flat.dtype)
        if shape is None or self.image_shape is not None:
            given = image_shape_of(self.image_shape, flat.shape[1])
            _check_shape(given, shape or given)
            shape = given
        span = max(high - background, background - low) or GREATEST_SPAN
        if span > float(np.finfo(np.float32).max):
            raise InputError(f"X holds {low:g} to {high:g}: expected a range that float32 holds")
        self._seed = seed_of(self.random_state)
        self.image_shape_, self.background_ = shape, float(background)
        # A power of two, so that bytes and images in [-1, 1] keep every bit.
        self._unit = 2.0 ** math.ceil(math.log2(span / GREATEST_SPAN))
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> AnyArray:
        """Fits and deforms: `deform` of epoch 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            Labels, for `similar_labels`.

        Returns
        -------
        ndarray of the same shape and type.
        """
        return self.fit(X).deform(X, y)

    def transform(self, X: ArrayLike) -> AnyArray:
        """The images as they are: only what a model is trained on is to be deformed."""
        check_is_fitted(self, "image_shape_")
        flat, shape = self._flat(X, reset=False)
        return flat if shape is None else flat.reshape(len(flat), *shape)

    def deform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epoch: int = 0,
        indices: ArrayLike | None = None,
    ) -> AnyArray:
        """Deformed images.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            Labels, for `similar_labels`; without them no image is similar.
        epoch : int, default=0
            Which of the random maps of an image, 0 to 2**32 - 1.
        indices : array-like of int of shape (n_samples,), default=None
            Which images of the training set these are, 0 to 2**31 - 1, in any order; None
            counts them from 0. Consecutive ones take least time.

        Returns
        -------
        ndarray of the same shape and type.
        """
        check_is_fitted(self, "image_shape_")
        parameters = self._parameters()
        check_whole("epoch", epoch, 0, MAX_EPOCH)
        flat, shape = self._flat(X, reset=False)
        self._check_background(self.background_, flat.dtype)
        n = len(flat)
        indices = _check_indices(indices, n)
        similar = np.zeros(n, np.uint8)
        if y is not None:
            labels = column_or_1d(y)
            if len(labels) != n:
                raise InputError(f"y holds {len(labels)} labels, expected {n} for as many images")
            similar[:] = are_similar(labels, self.similar_labels)
        backend = self._get_backend(n)
        result = np.empty(flat.shape, flat.dtype)
        for part in batches(n, flat.shape[1]):
            shown = deform_selected(
                self._to_unit(flat[part]),
                indices[part],
                similar[part],
                parameters,
                self._seed,
                int(epoch),
                backend,
            )
            result[part] = self._from_unit(shown.reshape(len(shown), -1), flat[part])
        return result if shape is None else result.reshape(n, *shape)

    def _parameters(self) -> DeformationParameters:
        """As labels, 1 stands for those that are similar."""
        for name in ("sigma", "alpha", "beta", "gamma"):
            check_real(name, getattr(self, name))
        are_similar(np.empty(0), self.similar_labels)  # only checks it
        return DeformationParameters(self.sigma, self.alpha, self.beta, self.gamma, (1,))

    def _get_backend(self, n: int) -> backends.Backend:
        grids = -(-n // IMAGES_PER_GRID)  # a thread takes one at a time
        return backends.get(self.backend, threads_of(self.threads, grids))

    def _flat(self, X: Any, reset: bool) -> tuple[AnyArray, tuple[int, int] | None]:
        """Images (n_samples, n_features), checked, and (height, width) if they were not flat."""
        shape = None
        if isinstance(X, (list, tuple)):
            X = np.asarray(X)
        if getattr(X, "ndim", 2) == 3:
            X = np.asarray(X)
            shape = X.shape[1:]
            if not reset:
                _check_shape(self.image_shape_, shape)
            X = X.reshape(len(X), shape[0] * shape[1])
        elif getattr(X, "ndim", 2) > 3:
            raise InputError(f"X has shape {X.shape}, expected (n, h, w) or (n, n_features)")
        flat = validate_data(self, X, dtype="numeric", order="C", reset=reset)
        if flat.dtype.kind not in "iuf":
            raise InputError(f"X has type {flat.dtype}, expected whole or real numbers")
        return flat, shape

    @staticmethod
    def _check_background(background: float, dtype: np.dtype[Any]) -> None:
        if dtype.kind == "f":
            return
        limits = np.iinfo(dtype)
        if background != int(background) or not limits.min <= background <= limits.max:
            raise InputError(
                f"background {background:g}: expected a whole number from {limits.min} to "
                f"{limits.max:,} for images of {dtype}"
            )

    def _to_unit(self, flat: AnyArray) -> Float32Array:
        """Images as the backends take them: float32, the background being -1."""
        inside = (flat.astype(np.float64) - self.background_) / self._unit + BACKGROUND
        return inside.astype(np.float32).reshape(len(flat), *self.image_shape_)

    def _from_unit(self, shown: Float32Array, flat: AnyArray) -> Float64Array:
        """The inverse, in the type and the range of each image and the background."""
        values = (shown.astype(np.float64) - BACKGROUND) * self._unit + self.background_
        if flat.dtype.kind != "f":
            np.rint(values, out=values)
        low = np.minimum(flat.min(axis=1, keepdims=True), self.background_)
        high = np.maximum(flat.max(axis=1, keepdims=True), self.background_)
        return np.clip(values, low, high, out=values)


def _check_shape(expected: tuple[int, int], found: tuple[int, int]) -> None:
    if expected != found:
        sides = f"{expected[0]} x {expected[1]}"
        raise InputError(f"X holds images of {found[0]} x {found[1]}, expected {sides}")


def _check_indices(indices: ArrayLike | None, n: int) -> AnyArray:
    """Indices as (n,) whole numbers."""
    if indices is None:
        return np.arange(n)
    indices = np.asarray(indices)
    if indices.shape != (n,) or indices.dtype.kind not in "iu":
        raise InputError(
            f"indices: {indices.dtype} of shape {indices.shape}, "
            f"expected whole numbers of shape ({n},)"
        )
    if indices.min() < 0 or indices.max() > MAX_INDEX:
        raise InputError(
            f"indices: from {indices.min()} to {indices.max()}, expected 0 to {MAX_INDEX:,}"
        )
    return indices.astype(np.int64)
