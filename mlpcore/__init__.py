"""Multilayer perceptrons, trained by true on-line back-propagation on deformed images.

Weights change after every single sample, and every epoch deforms the training images anew: the
system of Cireşan, Meier, Gambardella and Schmidhuber, *Deep Big Simple Neural Nets Excel on
Handwritten Digit Recognition* (2010), by SIMD kernels in C and by CUDA kernels.

>>> from mlpcore import Trainer, TrainingConfig, backends, dataset
>>> data = dataset.load(name="digits")  # without a name: MNIST, if found
>>> config = TrainingConfig(hidden_layers=(50,), epochs=2, seed=1)
>>> trainer = Trainer(config, data, backends.get())
>>> trainer.run()
True
>>> trainer.state.history[-1].test_error < 30  # percent
True

| for | there is |
|---|---|
| data | `mlpcore.dataset`: MNIST, other IDX files, embedded digits |
| a network | `mlpcore.network.Network`; `mlpcore.architecture` has the paper's |
| deformation | `mlpcore.deformation`: elastic and affine, of any images |
| training | `mlpcore.training.Trainer`; `mlpcore.config`: what determines a run |
| evaluation | `mlpcore.evaluation`: error rate, confusion matrix, second guesses |
| files | `mlpcore.weights`: networks; `mlpcore.checkpoint`: runs on disk; `mlpcore.export`: ONNX |
| all of it on one's own terms | `mlpcore.backends.base`: the operations that all backends share |

Bad input raises `mlpcore.errors.InputError`, whose one line names the value and what was expected.
The seed and the image decide every random number: see `mlpcore.philox`.
"""

import importlib
from typing import TYPE_CHECKING

from mlpcore import backends, dataset, deformation, philox
from mlpcore.committee import Committee
from mlpcore.deformation import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.evaluation import Evaluation, evaluate
from mlpcore.network import Network
from mlpcore.training import Trainer, TrainingConfig

if TYPE_CHECKING:
    from mlpcore.elastic_deformer import ElasticDeformer
    from mlpcore.estimator import OnlineMLPClassifier

__version__ = "0.1.0"
__all__ = [
    "Committee",
    "DeformationParameters",
    "ElasticDeformer",
    "Evaluation",
    "InputError",
    "Network",
    "OnlineMLPClassifier",
    "Trainer",
    "TrainingConfig",
    "backends",
    "dataset",
    "deformation",
    "evaluate",
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
