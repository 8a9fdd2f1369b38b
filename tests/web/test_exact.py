"""The JavaScript in the page computes what Python does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from mlpcore import Network, backends
from mlpcore.data.dataset import MNIST
from mlpcore.data.digit import find_digit
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.deformation import DeformationParameters, deform_selected
from mlpcore.deformation.values import border_values
from mlpcore.inference.classifier import PRETRAINED_FILE, TrainedClassifier
from mlpcore.network.activation import ACTIVATIONS
from mlpcore.store.trained import TrainedNetwork
from mlpcore.web.html import to_page
from pictures import DIGITS

BACKEND = backends.get("cpu", 1)

#: Sums of float32 products round differently in the page, which adds in float64.
OUTPUT_TOLERANCE = 1e-5

#: The page rounds to float32 as a fused multiply-add does; instruction sets without one, and
#: sines that differ in the last bit, move pixels of size 1 by some rounding errors of 6e-8.
PIXEL_TOLERANCE = 2e-6


def ask(page, function, pictures):
    """The answers of a function of JavaScript for each picture."""
    script = f"(all) => all.map((each) => ({function})(mlpcore.imageOf(each)))"
    return page.evaluate(script, pictures.reshape(-1, 784).tolist())


def network_of(seed, value_range=(0, 255), **settings):
    """An untrained network for MNIST's pictures; its outputs are far from 0."""
    network = Network((841, 30, 10), seed, **settings)
    network.weights[-1][...] *= 20
    pixels = structs.replace(MNIST_PIXELS, value_range=value_range, whole=value_range[1] == 255)
    return TrainedNetwork(Path(f"net{seed}.safetensors"), network, pixels, {"data": MNIST})


@pytest.fixture(scope="module")
def pictures():
    """60 pictures of 28 x 28, as MNIST's."""
    return np.stack([find_digit(digit).pixels for digit in DIGITS[:60]])


def test_outputs_and_guesses(open_page, pictures):
    """Of all kinds of networks and committees, for images and for digits in pictures."""
    pretrained = TrainedNetwork.read(PRETRAINED_FILE)
    committees = [
        (pretrained,),
        (network_of(1), network_of(2), network_of(3)),
        (pretrained, *(network_of(4, activation=each) for each in ACTIVATIONS)),
        (pretrained, network_of(5, value_range=(0, 200))),
        (network_of(6, value_range=(0, 16)), network_of(7, (-2, 14))),
    ]
    script = """(image) => [mlpcore.answer(image), mlpcore.answerOfDigit(image)]
        .map(({ outputs }) => Array.from(outputs))"""
    images = MNIST_PIXELS.to_images(pictures)
    for networks in committees:
        classifier = TrainedClassifier(networks, BACKEND)
        page = open_page(to_page(classifier))
        found = np.array(ask(page, script, pictures))
        ways = classifier.outputs, classifier.outputs_of_digits
        expected = np.stack([of(images) for of in ways], axis=1)
        assert np.abs(expected[:, 0] - expected[:, 1]).max() > 0.03
        np.testing.assert_allclose(found, expected, rtol=0, atol=OUTPUT_TOLERANCE)
        assert np.array_equal(found.argmax(axis=2), expected.argmax(axis=2))


def test_doubts(open_page, pictures):
    """Of noise, and of digits that fade into it; none by networks that read something else."""
    noise = np.random.default_rng(0).integers(0, 256, pictures.shape)
    shares = np.linspace(0, 1, len(pictures))[:, None, None]
    pixels = np.rint((1 - shares) * pictures + shares * noise).astype(np.uint8)
    known = network_of(1)
    for network in known, replace(known, metadata={"data": "letters"}):
        classifier = TrainedClassifier([network], BACKEND)
        page = open_page(to_page(classifier))
        expected = classifier.doubtful(MNIST_PIXELS.to_images(pixels))
        assert ask(page, "mlpcore.isDoubtful", pixels) == expected.tolist()
        assert expected.any() == (network is known) and not expected[:5].any()


CASES = [
    (DeformationParameters(similar_labels=()), 0, 0),
    (DeformationParameters(5.0, 38.0, 15.0, 20.0, ()), 1, 7),
    (DeformationParameters(0.0, 3.0, 0.0, 0.0, ()), 2**40 + 5, 2),
    (DeformationParameters(12.0, 120.0, 60.0, 60.0, ()), 12, 100),
]


def test_deformed_digits(open_page, pictures):
    """The page's form of a digit is the one that `deform` gives the first image of a set.

    Around it is the colour of the paper, which is black, grey or white.
    """
    page = open_page(to_page(TrainedClassifier([network_of(1)], BACKEND)))
    script = """([pixels, ...drawing]) => Array.from(mlpcore.answer(
        mlpcore.imageOf(pixels), mlpcore.drawMap(...drawing)).inputs[0])"""
    for k, (parameters, seed, epoch) in enumerate(CASES):
        ink = pictures[k]
        pixels = (ink, ink // 2 + 80, 255 - ink)[k % 3].copy()
        pixels[0, :9] = 255 - pixels[0, 9]  # a spot at the edge is not the paper
        given = [pixels.ravel().tolist(), parameters.get_params(), seed, epoch]
        found = page.evaluate(script, given)
        image = MNIST_PIXELS.to_images(pixels[None])
        drawing = np.zeros(1, int), np.zeros(1, int), parameters, seed, epoch, BACKEND
        expected = deform_selected(image, *drawing, float(border_values(image[None])[0]))
        assert np.abs(expected - image).max() > 0.5
        np.testing.assert_allclose(found, expected.ravel(), rtol=0, atol=PIXEL_TOLERANCE)
