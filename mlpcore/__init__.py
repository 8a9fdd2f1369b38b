"""mlpcore: true on-line back-propagation and elastic deformation, fast."""

from mlpcore import backends, dataset, deformation, philox
from mlpcore.committee import Committee
from mlpcore.deformation import DeformationParameters
from mlpcore.errors import InputError
from mlpcore.evaluation import Evaluation, evaluate
from mlpcore.network import Network
from mlpcore.training import Trainer, TrainingConfig

__version__ = "0.1.0"
__all__ = [
    "Committee",
    "DeformationParameters",
    "Evaluation",
    "InputError",
    "Network",
    "Trainer",
    "TrainingConfig",
    "backends",
    "dataset",
    "deformation",
    "evaluate",
    "philox",
]
