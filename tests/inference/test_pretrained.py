"""The network in the package: there, small, unchanged, and as good as it says."""

import hashlib
import os

import numpy as np
import pytest

import mlpcore
from mlpcore import dataset
from mlpcore.inference.classifier import PRETRAINED_FILE


def test_it_is_what_was_made():
    content = PRETRAINED_FILE.read_bytes()
    sha256, name = PRETRAINED_FILE.with_suffix(".sha256").read_text().split()
    assert (hashlib.sha256(content).hexdigest(), name) == (sha256, PRETRAINED_FILE.name)
    assert len(content) < 3e6


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_it_is_as_good_as_it_says():
    """Another backend may round one digit in 10,000 to another class."""
    net = mlpcore.load("pretrained")
    data = dataset.load(os.environ["MLPCORE_DATA"], name="mnist")
    errors = np.count_nonzero(net.predict_images(data.test_images) != data.test_labels)
    assert abs(errors - int(net.networks[0].metadata["test_errors"])) <= 1
