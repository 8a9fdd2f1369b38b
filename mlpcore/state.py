"""Pickles of version 0.1.0 look for `EpochMetrics` here."""

from mlpcore.training.state import EpochMetrics

__all__ = ["EpochMetrics"]
