"""The samples of a training: inputs, the places of their classes, weights."""

from __future__ import annotations

import reprlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mlpcore.checks import check_real
from mlpcore.errors import InputError
from mlpcore.typing import AnyArray, Float32Array, Float64Array, UInt8Array

#: Features beyond this root mean square are not scaled. Whole units of a measurement, such as
#: centimetres of a petal or grey levels up to 16, stay below and are learnt well enough.
FAR_OUTSIDE = 10.0


@dataclass(frozen=True)
class Samples:
    """Inputs (n, n_features), places of their classes (n,), and weights (n,) if there are any."""

    inputs: Float32Array
    codes: UInt8Array
    weights: Float32Array | None

    def part(self, indices: AnyArray) -> Samples:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[indices]
        return Samples(self.inputs[indices], self.codes[indices], weights)

    def hold_out(self, fraction: float, seed: int) -> tuple[Samples, Samples]:
        """Two parts, with the same shares of the classes; the second has this fraction of all."""
        split = StratifiedShuffleSplit(1, test_size=fraction, random_state=seed % 2**32)
        try:
            ((kept, held_out),) = split.split(self.inputs, self.codes)
        except ValueError:
            n, n_classes = len(self.codes), len(np.unique(self.codes))
            raise InputError(
                f"early_stopping with a validation_fraction of {fraction} of {n} samples of "
                f"{n_classes} classes: expected 2 or more samples of each class, and enough for "
                "each class in both parts"
            ) from None
        # The order decides nothing but must not depend on the split: training shuffles anyway.
        parts = self.part(np.sort(kept)), self.part(np.sort(held_out))
        for part in parts:
            if part.weights is not None and not part.weights.any():
                raise InputError(
                    "sample_weight: all are zero in a part of early_stopping's split, expected "
                    "some weight in both; another random_state splits otherwise"
                )
        return parts


def check_samples(mlp: Any, X: Any, y: Any, reset: bool) -> tuple[Float32Array, AnyArray]:
    """Inputs (n, n_features) and labels (n,) that a classifier can be trained on."""
    X, y = validate_data(mlp, X, y, dtype=np.float32, order="C", reset=reset)
    check_classification_targets(y)
    if mlp.deformation is not None and np.abs(X).max() > 1 + 1e-6:  # float32's rounding
        raise InputError(
            f"X holds {X.flat[np.abs(X).argmax()]:.4g}: expected images in [-1, 1], "
            "with a background of -1, for a deformation"
        )
    warn_of_unscaled(X)
    return X, y


def warn_of_unscaled(X: Float32Array) -> None:
    """Warns, with the remedy, if a feature of X (n, n_features) is far outside [-1, 1]."""
    squares = np.einsum("ij,ij->j", X, X, dtype=np.float64)
    greatest = float(np.sqrt(squares.max(initial=0.0) / len(X)))
    if greatest > FAR_OUTSIDE:
        warnings.warn(
            f"X is far outside [-1, 1]: feature {squares.argmax()} has a root mean square of "
            f"{greatest:.4g}. Training may fail. Scale X first, for example by "
            "make_pipeline(StandardScaler(), OnlineMLPClassifier()).",
            stacklevel=4,  # of who called fit
        )


def weights_of(
    sample_weight: Any, class_weight: Any, classes: AnyArray, codes: UInt8Array
) -> Float32Array | None:
    """Weights (n,) of samples whose classes have these places; None if all are 1 by default.

    Each is the sample's weight times that of its class.
    """
    weights = None
    if sample_weight is not None:
        weights = check_array(
            sample_weight, ensure_2d=False, dtype=np.float32, input_name="sample_weight"
        )
        if weights.shape != codes.shape:
            raise InputError(
                f"sample_weight has shape {weights.shape}: expected {codes.shape}, one for each "
                "sample"
            )
        if weights.min() < 0:
            raise InputError(f"sample_weight holds {weights.min():.4g}: expected 0 or more")
    if class_weight is not None:
        factors = _class_factors(class_weight, classes, codes).astype(np.float32)[codes]
        weights = factors if weights is None else weights * factors
    if weights is not None and not weights.any():
        raise InputError("sample_weight and class_weight: all weights are zero, expected some more")
    return weights


def _class_factors(class_weight: Any, classes: AnyArray, codes: UInt8Array) -> Float64Array:
    """The weight of each class, (n_classes,)."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, minlength=len(classes))
        return len(codes) / (np.count_nonzero(counts) * np.maximum(counts, 1))
    if not isinstance(class_weight, dict):
        shown = reprlib.repr(class_weight)
        raise InputError(f'class_weight {shown}: expected None, "balanced" or a dictionary')
    known = classes.tolist()
    for label, weight in class_weight.items():
        if label not in known:
            raise InputError(f"class_weight of {label!r}: expected labels {reprlib.repr(known)}")
        check_real(f"class_weight of {label!r}", weight)
        if not 0 <= weight <= np.finfo(np.float32).max:
            raise InputError(f"class_weight of {label!r} {weight}: expected 0 or more")
    return np.array([class_weight.get(label, 1.0) for label in known], np.float64)
