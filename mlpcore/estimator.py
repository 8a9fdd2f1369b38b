"""Where pickles of version 0.1.0 look for the classifier."""

from mlpcore.estimators.classifier import OnlineMLPClassifier

__all__ = ["OnlineMLPClassifier"]
