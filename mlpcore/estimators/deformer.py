"""The deformation as a transformer: scikit-learn's conventions, images in any range of values."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from mlpcore import backends
from mlpcore.backends.arguments import IMAGES_PER_GRID, MAX_EPOCH, check_indices
from mlpcore.checks import check_array_like, check_whole, real_array
from mlpcore.data.pixels import batches
from mlpcore.deformation.deform import deform_selected, displacements
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.deformation.targets import move_masks, move_points
from mlpcore.deformation.values import (
    EXACT_OF_MASKS,
    border_values,
    check_background,
    check_values,
    deform_values,
)
from mlpcore.errors import InputError
from mlpcore.estimators.validation import (
    are_similar,
    check_similar_labels,
    image_shape_of,
    seed_of,
    threads_of,
)
from mlpcore.typing import AnyArray

#: What `channels` may be, and the shapes that it stands for.
SHAPES = {
    None: "(n, h, w) or (n, n_features), or channels to be 'first' or 'last'",
    "first": "(n, channels, h, w)",
    "last": "(n, h, w, channels)",
}

#: A thread takes as long to start as to deform some thousand pixels.
PIXELS_PER_THREAD = 2**15


@dataclass(kw_only=True, repr=False, eq=False)
class ElasticDeformer(
    OneToOneFeatureMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Deforms images at random, elastically and affinely, to augment training data.

    Each image gets its own random map (Cireşan et al. 2010, "Deforming images"). The map depends
    on the seed, the epoch and the image's index alone: not on the other images of a batch, nor
    on the number of processes or threads.

    In a `Pipeline`, the next step is trained on images that `fit_transform` deforms once;
    `transform`, which is called to predict, returns images as they are. To deform anew for every
    epoch, use the `deformation` of `OnlineMLPClassifier`, or call `deform`.

    Grey-scale images have the shape (n_samples, height, width), or (n_samples, n_features) with
    their pixels row by row. `channels` says where the channels of colour images are; all channels
    of an image get the same map. Images are NumPy arrays, or PyTorch tensors on any device, of
    numbers or truth values. Results are of the same kind, shape and type: whole numbers are rounded
    to the nearest, and no value leaves the range of its image and the background. Arithmetic is
    float32: errors are about 1e-7 of the greatest value, and whole numbers beyond 2**24 are
    refused.

    `deform_masks` and `deform_keypoints` move what belongs to images along with them.

    Parameters
    ----------
    sigma : float, default=6.0
        Standard deviation, in pixels, of the Gaussian that smooths the displacements, at most
        512. It is cut off at 10 pixels up to a sigma of 6, as in the paper, and at 4 sigma beyond.
    alpha : float, default=36.0
        Scale of the displacements, in pixels, before they are smoothed. Their RMS is then
        alpha / 32 with a sigma of 6, and alpha / (6.1 sigma) with a greater one. 0 means no
        elastic deformation.
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
        The value around an image. None stands for that of the paper: the median of the
        pixels at the borders of the images that `fit` sees, for each channel.
    random_state : int, RandomState instance or None, default=None
        The seed, a whole number from 0 to 2**64 - 1, or what `fit` draws it from.
    backend : str, default="cpu"
        A name that `mlpcore.backends.get` knows.
    channels : {"first", "last"}, default=None
        Images are (n_samples, channels, height, width) if "first", as in PyTorch, or (n_samples,
        height, width, channels) if "last". None stands for grey-scale images without an axis of
        channels.
    threads : int, default=None
        None takes the available cores; in a worker process, such as a PyTorch DataLoader's, its
        share of them.

    Attributes
    ----------
    background_ : float or ndarray of shape (n_channels,)
        The value around an image, or around each channel where they differ.
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

    sigma: float = field(default=6.0, kw_only=False)
    alpha: float = field(default=36.0, kw_only=False)
    beta: float = field(default=15.0, kw_only=False)
    gamma: float = field(default=15.0, kw_only=False)
    similar_labels: Sequence[Any] | AnyArray = ()
    image_shape: tuple[int, int] | None = None
    background: float | None = None
    random_state: int | np.random.RandomState | None = None
    backend: str = "cpu"
    channels: str | None = None
    threads: int | None = None

    def fit(self, X: ArrayLike, y: object = None) -> ElasticDeformer:
        """Learns the images' shape and range of values, and draws a seed if none is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
            With `channels`, one axis more.
        y : ignored
        """
        self._parameters()
        images = self._images(X)
        if not len(images):
            raise InputError(f"X has shape {images.shape}: expected at least one image")
        sides = shape = self._sides(images.shape)
        if shape is None or self.image_shape is not None:
            shape = image_shape_of(self.image_shape, math.prod(sides or images.shape[1:]))
            _check_sides(sides, shape)
        if self.background is None:
            medians = border_values(self._planes(images, shape).swapaxes(0, 1)).astype(float)
            around = medians if np.ptp(medians) else float(medians[0])
        else:
            check_background(self.background, images.dtype)
            around = float(self.background)
        self._seed = seed_of(self.random_state)
        validate_data(self, X, skip_check_array=True)  # learns the names of features
        self.n_features_in_ = math.prod(images.shape[1:])
        self.image_shape_, self.background_ = shape, around
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """Fits, then deforms X with labels y as `deform` does in epoch 0."""
        return self.fit(X).deform(X, y)

    def transform(self, X: ArrayLike) -> Any:
        """The images as they are: only the images that a model is trained on are deformed."""
        return _in_kind_of(X, self._fitted_images(X))

    def deform(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epoch: int = 0,
        indices: ArrayLike | None = None,
    ) -> Any:
        """Deformed images, an array or a tensor of the same shape and type.

        Without an earlier `fit`, these images stand for the training images.

        Parameters
        ----------
        X : array-like of shape (n_samples, height, width) or (n_samples, n_features)
            With `channels`, one axis more.
        y : array-like of shape (n_samples,), default=None
            Labels, for `similar_labels`. Without labels no image is similar.
        epoch : int, default=0
            Which of an image's random maps to use, 0 to 2**32 - 1.
        indices : array-like of int of shape (n_samples,), default=None
            Places of the images in the training set, 0 to 2**31 - 1, in any order; None counts
            from 0. Consecutive ones are fastest.
        """
        if "image_shape_" not in vars(self):
            self.fit(X)
        images = self._fitted_images(X)
        around = np.atleast_1d(self.background_).tolist()
        for value in around:
            check_background(value, images.dtype)
        result = np.empty(images.shape, images.dtype)
        planes, shown = self._planes(images), self._planes(result)
        for part, drawing in self._parts(len(images), y, epoch, indices):
            deform = functools.partial(deform_selected, **drawing)
            deform_values(planes[part], shown[part], deform, around)
        return _in_kind_of(X, result)

    def deform_masks(
        self,
        masks: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epoch: int = 0,
        indices: ArrayLike | None = None,
        background: float = 0,
    ) -> Any:
        """Masks moved as `deform` moves their images: each pixel is the nearest one at its source.

        Parameters
        ----------
        masks : array-like of shape (n_samples, height, width)
            Truth values or numbers. With `channels`, they may have an axis of channels too.
        y, epoch, indices
            As for `deform`.
        background : float, default=0
            The value outside a mask.
        """
        self._check_is_fitted()
        values: AnyArray = real_array("masks", masks, finite=False)
        wanted = (3, 4) if self.channels else (3,)
        if values.ndim not in wanted or self._sides(values.shape) != self.image_shape_:
            sides = f"(n, {self.image_shape_[0]}, {self.image_shape_[1]})"
            raise InputError(f"masks have shape {values.shape}, expected {sides}")
        check_background(background, values.dtype, exact=EXACT_OF_MASKS)
        result = np.empty(values.shape, values.dtype)
        planes, shown = self._planes(values), self._planes(result)
        for part, drawing in self._parts(len(values), y, epoch, indices):
            fields = displacements(self.image_shape_, **drawing)
            shown[part] = move_masks(planes[part], fields, background)
        return _in_kind_of(masks, result)

    def deform_keypoints(
        self,
        keypoints: ArrayLike,
        y: ArrayLike | None = None,
        *,
        epoch: int = 0,
        indices: ArrayLike | None = None,
    ) -> Any:
        """Keypoints moved as `deform` moves what is at them in their images.

        Parameters
        ----------
        keypoints : array-like of shape (n_samples, n_keypoints, 2)
            x and y in pixels; (0, 0) is the centre of the first pixel. They may lie outside of the
            image, before and after.
        y, epoch, indices
            As for `deform`.

        Returns
        -------
        float32 if the keypoints are, else float64; of the same shape.
        """
        self._check_is_fitted()
        points: AnyArray = real_array("keypoints", keypoints)
        if points.ndim != 3 or points.shape[2] != 2:
            raise InputError(f"keypoints have shape {points.shape}, expected (n, n_keypoints, 2)")
        result = np.empty(points.shape, np.float32 if points.dtype == np.float32 else np.float64)
        for part, drawing in self._parts(len(points), y, epoch, indices):
            fields = displacements(self.image_shape_, **drawing)
            result[part] = [move_points(*each) for each in zip(points[part], fields)]
        return _in_kind_of(keypoints, result)

    def _parameters(self) -> DeformationParameters:
        """Parameters for labels of 1, the similar ones, and 0, as `_parts` gives them."""
        check_similar_labels(self.similar_labels)
        if self.channels not in tuple(SHAPES):
            raise InputError(f"channels {self.channels!r}: expected 'first', 'last' or None")
        return DeformationParameters(self.sigma, self.alpha, self.beta, self.gamma, (1,))

    def _check_is_fitted(self) -> None:
        if "image_shape_" not in vars(self):  # scikit-learn's check takes longer than to deform
            check_is_fitted(self, "image_shape_")

    def _parts(
        self, n: int, y: ArrayLike | None, epoch: int, indices: ArrayLike | None
    ) -> Iterator[tuple[slice, dict[str, Any]]]:
        """Parts of n images, and the arguments of `deform_selected` and `displacements` for each.

        Similar labels are 1, all others 0.
        """
        check_whole("epoch", epoch, 0, MAX_EPOCH)
        parameters = self._parameters()
        places = check_indices(np.arange(n) if indices is None else indices, n)
        similar = np.zeros(n, np.uint8)
        if y is not None:
            check_array_like("y", y)
            labels = column_or_1d(y)
            if len(labels) != n:
                raise InputError(f"y holds {len(labels)} labels, expected {n} for as many images")
            similar[:] = are_similar(labels, self.similar_labels)
        useful = n * self.n_features_in_ // PIXELS_PER_THREAD
        if useful > 1:  # a thread computes one grid at a time
            useful = min(useful, len(np.unique(places // IMAGES_PER_GRID)))
        backend = backends.get(self.backend, threads_of(self.threads, useful))
        drawing = {"seed": self._seed, "epoch": int(epoch), "backend": backend}
        drawing["parameters"] = parameters
        for part in batches(n, self.n_features_in_):
            yield part, {"indices": places[part], "labels": similar[part], **drawing}

    def _sides(self, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Height and width of images whose array has this shape; None if they are flat."""
        if len(shape) == 4:
            height, width = shape[1:3] if self.channels == "last" else shape[2:]
            return height, width
        return (shape[1], shape[2]) if len(shape) == 3 else None

    def _planes(self, images: AnyArray, shape: tuple[int, int] | None = None) -> AnyArray:
        """Checked images or masks as (n, channels, h, w), if possible a view."""
        if images.ndim < 4:
            return images.reshape(len(images), 1, *(shape or self.image_shape_))
        return np.moveaxis(images, -1, 1) if self.channels == "last" else images

    def _images(self, X: Any) -> AnyArray:
        """Images as an array of their own shape, checked.

        scikit-learn's checks would take longer than to deform an image.
        """
        images: AnyArray = real_array("X", X)
        if images.ndim not in ((4,) if self.channels else (2, 3)) or 0 in images.shape[1:]:
            raise InputError(f"X has shape {images.shape}, expected {SHAPES[self.channels]}")
        check_values("X", images)
        return images

    def _fitted_images(self, X: Any) -> AnyArray:
        """Images of the shape that `fit` has seen."""
        self._check_is_fitted()
        images = self._images(X)
        _check_sides(self._sides(images.shape), self.image_shape_)
        if (size := math.prod(images.shape[1:])) != self.n_features_in_:
            raise InputError(f"X holds {size} values per image, expected {self.n_features_in_}")
        return images


ElasticDeformer.__module__ = "mlpcore"  # where pickles look for it; this module may move
del ElasticDeformer.__dataclass_fields__  # Dask and others would compare nothing else


def _in_kind_of(given: Any, result: AnyArray) -> Any:
    """The result as a tensor on the same device, if what was given is one, or as it is."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(given, torch.Tensor):
        return result
    return torch.from_numpy(result).to(given.device)


def _check_sides(sides: tuple[int, int] | None, expected: tuple[int, int]) -> None:
    """Raises InputError if X holds images of other sides; None stands for flat ones."""
    if sides not in (None, expected):
        raise InputError(f"X holds images of {sides}, expected {expected}: height and width")
