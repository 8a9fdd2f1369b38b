"""On-line training: settings, the loop over epochs, and the state in which it can go on.

Here belongs what happens between two epochs. Nothing here prints, touches the disk or handles
signals: that belongs to an `Observer` in `mlpcore.report`, `mlpcore.store` or `mlpcore.commands`.
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
