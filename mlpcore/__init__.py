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
| data | `mlpcore.data.dataset`: MNIST, IDX and .npz files, arrays, embedded digits |
| a network | `mlpcore.network.Network`; `mlpcore.network.architecture` has the paper's |
| deformation | `mlpcore.deformation`: elastic and affine, of any images |
| training | `mlpcore.training.Trainer`; `mlpcore.training.config`: what determines a run |
| use | `mlpcore.load`: a trained network that reads pictures and arrays |
| evaluation | `mlpcore.evaluation`: error rate, confusion matrix, second guesses |
| files | `mlpcore.store`: weights, runs, ONNX |
| all of it on one's own terms | `mlpcore.backends.base`: the operations that all backends share |

Bad input raises `mlpcore.errors.InputError`, whose one line names the value and what was expected.
The seed and the image decide every random number: see `mlpcore.philox`.
"""

import importlib

from mlpcore.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers know the name, and typing takes 7 ms to import
if TYPE_CHECKING:
    from mlpcore import backends, deformation, philox
    from mlpcore.data import dataset
    from mlpcore.data.dataset import Dataset
    from mlpcore.deformation import DeformationParameters
    from mlpcore.errors import InputError
    from mlpcore.estimators.classifier import OnlineMLPClassifier
    from mlpcore.estimators.deformer import ElasticDeformer
    from mlpcore.evaluation import Committee, Evaluation, evaluate
    from mlpcore.inference import TrainedClassifier, load
    from mlpcore.network import Network
    from mlpcore.training import Trainer, TrainingConfig

__all__ = [
    "Committee",
    "Dataset",
    "DeformationParameters",
    "ElasticDeformer",
    "Evaluation",
    "InputError",
    "Network",
    "OnlineMLPClassifier",
    "TrainedClassifier",
    "Trainer",
    "TrainingConfig",
    "backends",
    "dataset",
    "deformation",
    "evaluate",
    "load",
    "philox",
]

#: Where the names are: imported when first used, because NumPy takes a tenth of a second to import,
#: and scikit-learn a whole one.
_MODULES = {
    "backends": "mlpcore.backends",
    "dataset": "mlpcore.data.dataset",
    "deformation": "mlpcore.deformation",
    "philox": "mlpcore.philox",
}
_OBJECTS = {
    "Committee": "mlpcore.evaluation",
    "Dataset": "mlpcore.data.dataset",
    "DeformationParameters": "mlpcore.deformation",
    "ElasticDeformer": "mlpcore.estimators.deformer",
    "Evaluation": "mlpcore.evaluation",
    "InputError": "mlpcore.errors",
    "Network": "mlpcore.network",
    "OnlineMLPClassifier": "mlpcore.estimators.classifier",
    "TrainedClassifier": "mlpcore.inference",
    "Trainer": "mlpcore.training",
    "TrainingConfig": "mlpcore.training",
    "evaluate": "mlpcore.evaluation",
    "load": "mlpcore.inference",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = importlib.import_module(_MODULES[name])
    elif name in _OBJECTS:
        value = getattr(importlib.import_module(_OBJECTS[name]), name)
    else:
        raise AttributeError(f"module 'mlpcore' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
