"""A small classifier, with the settings of `small_runs.make_config`, and its data."""

import pytest

from mlpcore import DeformationParameters, OnlineMLPClassifier
from small_runs import DATA, same_weights

X = DATA.train_images.reshape(230, 35)
Y = DATA.train_labels
SHAPE = DATA.image_shape
DEFORMATION = DeformationParameters(6.0, 4.0, 5.0, 5.0, similar_labels=(1,))
DEFORMED = {"deformation": DEFORMATION, "image_shape": SHAPE}
MODERN = {"activation": "relu", "loss": "cross-entropy", "init": "he"}

#: The settings of the paper.
PAPER = {"activation": "tanh", "loss": "squared", "init": "uniform", "decay": "factor", "alpha": 0}

#: For modules of tests that train no longer than they must.
SHORT = pytest.mark.filterwarnings("ignore:The loss")


def make_mlp(hidden=(9, 6), **changes):
    """A quick one by the paper's settings, as those of `make_config` are."""
    settings = {**PAPER, "learning_rate_init": 0.01, "max_iter": 3, "random_state": 5}
    return OnlineMLPClassifier(hidden, **settings | changes)


def same(a, b):
    """Whether two classifiers have the same weights, bit for bit."""
    return same_weights(a.network_, b.network_)
