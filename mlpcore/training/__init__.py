"""On-line training: settings, sources of samples, the loop over epochs, and its state.

Nothing here prints, touches the disk or handles signals. Observers in `mlpcore.report`,
`mlpcore.store` and `mlpcore.commands` do.
"""

from mlpcore.training.config import TrainingConfig
from mlpcore.training.sources import ArraySource, Source, SparseSource
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState
from mlpcore.training.trainer import Diverged, Observer, Trainer

__all__ = [
    "ArraySource",
    "Diverged",
    "EpochMetrics",
    "EpochProgress",
    "Observer",
    "Source",
    "SparseSource",
    "Trainer",
    "TrainingConfig",
    "TrainingState",
]
