"""mlpcore: true on-line back-propagation and elastic deformation, fast."""

import importlib
from typing import TYPE_CHECKING

from mlpcore import backends, dataset, deformation, philox
from mlpcore.deformation import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.network import Network
from mlpcore.training import Trainer, TrainingConfig

if TYPE_CHECKING:
    from mlpcore.elastic_deformer import ElasticDeformer
    from mlpcore.estimator import OnlineMLPClassifier

__version__ = "0.1.0"
__all__ = [
    "DeformationParameters",
    "ElasticDeformer",
    "InputError",
    "Network",
    "OnlineMLPClassifier",
    "Trainer",
    "TrainingConfig",
    "backends",
    "dataset",
    "deformation",
    "philox",
]

#: Imported when they are first used: scikit-learn takes longer to import than all the rest.
_LAZY = {
    "ElasticDeformer": "mlpcore.elastic_deformer",
    "OnlineMLPClassifier": "mlpcore.estimator",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'mlpcore' has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
