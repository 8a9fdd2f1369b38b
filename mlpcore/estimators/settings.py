"""What the parameters of a classifier stand for: settings of a training, networks and samples."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.base import BaseEstimator

from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.estimators.validation import (
    Samples,
    deformation_of,
    encode,
    image_shape_of,
    seed_of,
    weights_of,
)
from mlpcore.network.architecture import hidden_layers_of
from mlpcore.network.network import Network
from mlpcore.training.config import TrainingConfig
from mlpcore.typing import AnyArray, Float32Array

#: Parameters that `TrainingConfig` takes as they are.
PASSED_ON = set(TrainingConfig.__struct_fields__) - {"deformation"}


class Settings(BaseEstimator):  # type: ignore[misc]
    """The part of `mlpcore.OnlineMLPClassifier` that reads its parameters."""

    hidden_layer_sizes: Any
    learning_rate_init: float
    alpha: float
    deformation: DeformationParameters | None
    image_shape: tuple[int, int] | None
    class_weight: Any
    n_features_in_: int
    classes_: AnyArray
    _seed: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Settings:
        """Sets parameters by name, those of `deformation` too, as ``deformation__alpha``.

        The deformation is replaced by another one with the new values, never changed.
        """
        prefix = "deformation__"
        own = {name: value for name, value in params.items() if not name.startswith(prefix)}
        super().set_params(**own)
        if len(own) < len(params):
            changes = {k.removeprefix(prefix): params[k] for k in params if k not in own}
            if not isinstance(self.deformation, DeformationParameters):
                raise InputError(
                    f"deformation {self.deformation!r}: expected DeformationParameters"
                )
            self.deformation = self.deformation.set_params(**changes)
        return self

    def _config(self, epochs: int) -> TrainingConfig:
        return TrainingConfig(
            hidden_layers=hidden_layers_of(self.hidden_layer_sizes),
            epochs=epochs,
            learning_rate=self.learning_rate_init,
            deformation=deformation_of(self.deformation, self.classes_),
            seed=self._seed,
            **{name: value for name, value in vars(self).items() if name in PASSED_ON},
        )

    def _images(self, samples: Samples) -> Float32Array:
        """The inputs as images (n, h, w); of one row if no shape is needed."""
        n, n_features = samples.inputs.shape
        if self.deformation is None and self.image_shape is None:
            return samples.inputs.reshape(n, 1, n_features)
        return samples.inputs.reshape(n, *image_shape_of(self.image_shape, n_features))

    def _samples(self, inputs: Float32Array, labels: AnyArray, sample_weight: Any) -> Samples:
        codes = encode(self.classes_, labels)
        weights = weights_of(sample_weight, self.class_weight, self.classes_, labels)
        return Samples(inputs, codes, weights)

    def _new(self, classes: AnyArray) -> Any:
        """A copy before its first sample, yet without a network."""
        mlp = copy.copy(self)
        mlp.classes_, mlp._seed = classes, seed_of(self.random_state)
        mlp.loss_curve_, mlp._history, mlp._n_samples, mlp._n_calls = [], [], 0, 0
        mlp.t_, mlp._cache = 0, None
        mlp.validation_scores_ = mlp.best_validation_score_ = None
        return mlp

    def _new_network(self, config: TrainingConfig) -> Network:
        return config.new_network((self.n_features_in_, *config.hidden_layers, len(self.classes_)))
