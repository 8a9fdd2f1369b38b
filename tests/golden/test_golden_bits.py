"""The same bits at every revision: hashes of weights, deformed images and orders.

The hashes were printed by revision 7a385d4, those of strokes by the first revision that had
them, that of NEON under QEMU, and those of trainings on deformed images when their places in an
epoch came to decide how they are deformed. A change that alters one of them changes what a seed
gives: it says so in the CHANGELOG, with its reason.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import mlpcore
import pictures
from mlpcore import Network, OnlineMLPClassifier, dataset, deformation, philox
from mlpcore.backends.simd import INSTRUCTION_SETS, SCHEDULES, SimdBackend, unavailable_reason
from mlpcore.data.digit import find_digit

EXPECTED = json.loads((Path(__file__).parent / "hashes.json").read_text())
DIGITS = dataset.load(name="digits")

#: The widths fill no vector evenly. PACKED_FROM makes the small network use packed weights.
SIZES, SAMPLES, PACKED_FROM = (DIGITS.n_inputs, 70, 300, DIGITS.n_classes), 200, 0
IMAGES = DIGITS.train_images.reshape(-1, DIGITS.n_inputs)
X86 = [name for name in INSTRUCTION_SETS if name != "neon"]


def sha256(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array if isinstance(array, bytes) else np.ascontiguousarray(array).data)
    return digest.hexdigest()


def images_sha256(data):
    """The hash of all arrays of a data set, behind their shapes."""
    arrays = data.train_images, data.train_labels, data.test_images, data.test_labels
    return sha256(*(part for a in arrays for part in (repr(a.shape).encode(), a)))


def simd(name, **options):
    reason = unavailable_reason(name)
    if reason is not None:
        pytest.skip(f"{name}: {reason}")
    return SimdBackend(name, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", INSTRUCTION_SETS)
@pytest.mark.parametrize("threads", [1, 3])
def test_weights_after_online_training(name, schedule, threads):
    backend = simd(name, threads=threads, schedule=schedule, packed_from=PACKED_FROM)
    network, order = Network(SIZES, seed=7), philox.permutation(len(IMAGES), 7, 0)[:SAMPLES]
    rates = [0.004, 0.002, 0.001]
    backend.train(network, IMAGES, DIGITS.train_labels, order, rates, target=1.2)
    known = "packed" if schedule == "sparse" else schedule  # the same without rectifiers
    assert sha256(*network.weights, *network.biases) == EXPECTED["weights"][f"{name} {known}"]


@pytest.mark.parametrize("name", X86)
@pytest.mark.parametrize("kind", [("tanh", "squared"), ("relu", "cross-entropy")])
def test_weights_after_steps(name, kind):
    stepper = simd(name).stepper(Network(SIZES, 7, *kind))
    for part in (slice(50), slice(50, SAMPLES)):
        stepper.train(IMAGES[part], DIGITS.train_labels[part], [0.004, 0.002, 0.001])
    network = stepper.network
    assert sha256(*network.weights, *network.biases) == EXPECTED["steps"][f"{name} {kind[0]}"]


@pytest.mark.parametrize("name", X86)
def test_deformed_images(name):
    images, labels = DIGITS.train_images[:150], DIGITS.train_labels[:150]
    drawing = mlpcore.DeformationParameters(), 7, 3, simd(name), 30
    assert sha256(deformation.deform(images, labels, *drawing)) == EXPECTED["deformed"][name]


def test_images_of_data_sets():
    """All arrays of them; MNIST's if they are there."""
    assert images_sha256(DIGITS) == EXPECTED["digits"]
    assert sha256(DIGITS.with_strokes(0.5, 7).train_images) == EXPECTED["strokes"]
    if folder := os.environ.get("MLPCORE_DATA"):
        data = dataset.load(folder, name="mnist")
        assert images_sha256(data) == EXPECTED["mnist"]


def test_digits_in_pictures():
    scans = [pictures.lit(pictures.written(pictures.enlarged(each))) for each in pictures.DIGITS]
    assert sha256(*(find_digit(scan).image for scan in scans[:20])) == EXPECTED["pictures"]


def test_an_estimators_partial_fit():
    """A call with many samples, and one with few, which are trained one by one."""
    mlp = OnlineMLPClassifier((20,), random_state=7, backend="scalar")
    for part, name in (slice(150), "150"), (slice(150, 155), "5"):
        mlp.partial_fit(IMAGES[part], DIGITS.train_labels[part], classes=np.arange(10))
        assert sha256(*mlp.network_.weights) == EXPECTED["partial_fit"][name]
