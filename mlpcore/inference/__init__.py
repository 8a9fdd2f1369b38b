"""Trained networks at work: what they read in pictures and arrays.

Files of networks belong in `mlpcore.store`, errors and intervals in `mlpcore.evaluation`.
"""

from mlpcore.inference.classifier import TrainedClassifier, load
from mlpcore.inference.exports import export

__all__ = ["TrainedClassifier", "export", "load"]
