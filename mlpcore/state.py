"""Where pickles of version 0.1.0 look for the metrics of an epoch."""

from mlpcore.training.state import EpochMetrics

__all__ = ["EpochMetrics"]
