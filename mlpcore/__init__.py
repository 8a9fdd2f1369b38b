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
| data | `mlpcore.data.dataset`: MNIST, files of many formats, arrays, embedded digits |
| a network | `mlpcore.network.Network`; `mlpcore.network.architecture` has the paper's |
| deformation | `mlpcore.deformation`: elastic and affine, of any images |
| training | `mlpcore.training.Trainer`; `mlpcore.training.config`: what determines a run |
| use | `mlpcore.load`: a trained network that reads pictures and arrays; `mlpcore.read`: pages |
| evaluation | `mlpcore.evaluation`: error rate, confusion matrix, second guesses |
| files | `mlpcore.store`: weights and runs; `mlpcore.export`: ONNX and safetensors |
| all of it on one's own terms | `mlpcore.backends.base`: the operations that all backends share |

Bad input raises `mlpcore.errors.InputError`, whose one line names the value and what was expected.
The seed and the image decide every random number: see `mlpcore.philox`.
"""

import importlib

from mlpcore.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers know the name, and typing takes 7 ms to import
if TYPE_CHECKING:
    from mlpcore import backends as backends
    from mlpcore import deformation as deformation
    from mlpcore import philox as philox
    from mlpcore.data import dataset as dataset
    from mlpcore.data.dataset import Dataset as Dataset
    from mlpcore.deformation import DeformationParameters as DeformationParameters
    from mlpcore.errors import InputError as InputError
    from mlpcore.errors import PictureWarning as PictureWarning
    from mlpcore.estimators.classifier import OnlineMLPClassifier as OnlineMLPClassifier
    from mlpcore.estimators.deformer import ElasticDeformer as ElasticDeformer
    from mlpcore.estimators.regressor import OnlineMLPRegressor as OnlineMLPRegressor
    from mlpcore.estimators.stream import StreamMLPClassifier as StreamMLPClassifier
    from mlpcore.estimators.stream import StreamMLPRegressor as StreamMLPRegressor
    from mlpcore.evaluation import Evaluation as Evaluation
    from mlpcore.evaluation import evaluate as evaluate
    from mlpcore.inference import TrainedClassifier as TrainedClassifier
    from mlpcore.inference import export as export
    from mlpcore.inference import load as load
    from mlpcore.network import Network as Network
    from mlpcore.reading import read as read
    from mlpcore.training import Trainer as Trainer
    from mlpcore.training import TrainingConfig as TrainingConfig

#: Modules, with their public names or the module's own. A module is imported when a name is first
#: used, because NumPy takes a tenth of a second to import, and scikit-learn a whole one.
_NAMES = {
    "mlpcore.backends": "backends",
    "mlpcore.data.dataset": "dataset Dataset",
    "mlpcore.deformation": "deformation DeformationParameters",
    "mlpcore.errors": "InputError PictureWarning",
    "mlpcore.estimators.classifier": "OnlineMLPClassifier",
    "mlpcore.estimators.deformer": "ElasticDeformer",
    "mlpcore.estimators.regressor": "OnlineMLPRegressor",
    "mlpcore.estimators.stream": "StreamMLPClassifier StreamMLPRegressor",
    "mlpcore.evaluation": "Evaluation evaluate",
    "mlpcore.inference": "TrainedClassifier export load",
    "mlpcore.network": "Network",
    "mlpcore.philox": "philox",
    "mlpcore.reading": "read",
    "mlpcore.training": "Trainer TrainingConfig",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'mlpcore' has no attribute {name!r}")
    module = importlib.import_module(_MODULES[name])
    value: object = module if module.__name__.endswith(f".{name}") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
