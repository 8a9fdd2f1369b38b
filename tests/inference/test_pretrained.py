"""The network in the package: there, small, unchanged, and as good as it says."""

import hashlib
import os

import numpy as np
import pytest

import mlpcore
from mlpcore import TrainingConfig, dataset
from mlpcore.data.digit import find_digit
from mlpcore.inference.classifier import PRETRAINED_FILE
from mlpcore.network.architecture import PRESETS
from mlpcore.store.documents import from_json
from pictures import DIGITS, enlarged


@pytest.fixture
def path():
    if not PRETRAINED_FILE.exists():
        pytest.fail(f"{PRETRAINED_FILE} is missing: tools/pretrained.py RUN makes it", False)
    return PRETRAINED_FILE


@pytest.fixture
def net(path):
    return mlpcore.load("pretrained")


def test_it_is_what_was_made(path):
    content = path.read_bytes()
    sha256, name = path.with_suffix(".sha256").read_text().split()
    assert (hashlib.sha256(content).hexdigest(), name) == (sha256, path.name)
    assert len(content) < 3e6


def test_it_says_where_it_comes_from(net):
    (trained,) = net.networks
    metadata = trained.metadata
    config = from_json(metadata["training"], TrainingConfig)
    assert config.hidden_layers == PRESETS["net1"] == trained.network.layer_sizes[1:-1]
    assert (metadata["epochs"], metadata["seed"]) == (str(config.epochs), str(config.seed))
    assert trained.data_name == "MNIST"
    assert metadata["n_test"] == "10000"
    assert metadata["ones_and_sevens"] == str(config.ones_and_sevens) == "0.4"


def test_it_reads_digits_that_are_not_mnists(net):
    """Of scikit-learn's, which others wrote and which have 8 x 8 pixels, it reads most."""
    pixels = np.stack([find_digit(enlarged(digit)).pixels for digit in DIGITS[:100]])
    labels = dataset.load(name="digits").test_labels[:100]
    assert np.mean(net.predict(pixels) == labels) > 0.8


@pytest.mark.skipif(not os.environ.get("MLPCORE_DATA"), reason="MLPCORE_DATA is not set")
def test_it_is_as_good_as_it_says(net):
    """Another backend may round one digit in 10,000 to another class."""
    data = dataset.load(os.environ["MLPCORE_DATA"], name="mnist")
    errors = np.count_nonzero(net.predict_images(data.test_images) != data.test_labels)
    assert abs(errors - int(net.networks[0].metadata["test_errors"])) <= 1
