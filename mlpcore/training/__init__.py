"""On-line training: the settings, the loop over epochs, and the state from which it continues.

Nothing here prints, touches the disk or handles signals. Observers in `mlpcore.report`,
`mlpcore.store` and `mlpcore.commands` do.
"""

from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics, EpochProgress, TrainingState
from mlpcore.training.trainer import Diverged, Observer, Trainer

__all__ = [
    "Diverged",
    "EpochMetrics",
    "EpochProgress",
    "Observer",
    "Trainer",
    "TrainingConfig",
    "TrainingState",
]
