"""Figures show what they are given."""

from itertools import product

import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage
from matplotlib.textpath import TextPath
from scipy import ndimage

from mlpcore import Evaluation, Network
from mlpcore.report import figures, layout
from mlpcore.training.state import EpochMetrics


def make_evaluation(n, n_classes, share_wrong, seed=0):
    """Random outputs. About `share_wrong` of them are wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n)
    outputs = rng.uniform(-1, 1, (n, n_classes))
    outputs[np.arange(n), labels] += 3 * (rng.uniform(size=n) >= share_wrong)
    return Evaluation.of(outputs, labels)


def make_history(errors, n_test=10_000, rate=1e-3, deforming=1):
    """Epochs of (training, validation, test) errors."""
    return [
        EpochMetrics(k + 1, rate * 0.9965**k, 60_000, n_test, a, 0.1, b, c, deforming, 1, 1)
        for k, (a, b, c) in enumerate(errors)
    ]


def texts_of(figure):
    """The texts that are drawn: none beyond the limits of an axis."""
    texts, renderer = [], RendererAgg(*figure.bbox.size, figure.dpi)
    renderer.draw_text = lambda gc, x, y, text, *rest, **options: texts.append(text)
    figure.draw(renderer)
    return texts


def written(figure, numbers):
    """The places and values of each group of numbers that `layout.write` wrote, some of these."""
    fonts = [FontProperties(weight=weight) for weight in ("normal", "bold")]
    codes = {
        TextPath((0, 0), str(k), 9, font).codes.tobytes(): k for k, font in product(numbers, fonts)
    }
    return [
        (group.get_offsets(), [codes[path.codes.tobytes()] for path in group.get_paths()])
        for group in figure.findobj(PathCollection)
    ]


def shown_images(figure):
    return [np.ma.filled(each.get_array(), np.nan) for each in figure.findobj(AxesImage)]


def tiles_of(figure):
    """The images of the figure's mosaic, row by row; NaN is around them."""
    sheet = shown_images(figure)[0]
    return [sheet[part] for part in ndimage.find_objects(ndimage.label(np.isfinite(sheet))[0])]


@pytest.mark.parametrize(
    ("n", "shape", "n_classes", "share_wrong"),
    [(60, (61, 9), 256, 0.3), (400, (7, 5), 10, 0.9), (20, (5, 5), 3, 0)],
)
def test_misclassified_images_with_label_and_guesses(n, shape, n_classes, share_wrong):
    """A few errors are all shown; of many, only the first fit on a page."""
    evaluation = make_evaluation(n, n_classes, share_wrong)
    images = np.random.default_rng(1).uniform(-1, 1, (n, *shape)).astype(np.float32)
    figure = figures.misclassified(images, evaluation)
    wrong = evaluation.misclassified
    pictures = tiles_of(figure) if share_wrong else []
    assert len(pictures) == len(wrong) if n <= 60 else len(pictures) <= 100 < len(wrong)
    for shown, index in zip(pictures, wrong.indices):
        assert np.array_equal(shown, images[index])
    labels, (first, second) = wrong.labels[: len(pictures)], wrong.guesses[: len(pictures)].T
    right = second == labels
    numbers = [each for _, each in written(figure, range(n_classes))] or [[]] * 4
    for group, expected in zip(numbers, (labels, first, second[right], second[~right])):
        assert np.array_equal(group, expected)
    shown = f"the first {len(pictures)} of" in texts_of(figure)[-1]
    assert shown == (len(pictures) < len(wrong))


@pytest.mark.parametrize(("n_classes", "n"), [(3, 10**6), (20, 9_000), (256, 5000)])
def test_a_confusion_matrix(n_classes, n):
    """Shades show the errors, and numbers all that is there, where they have room."""
    evaluation = make_evaluation(n, n_classes, 0.4)
    figure = figures.confusion(evaluation)
    drawn, matrix = texts_of(figure), evaluation.confusion
    errors = matrix - np.diag(np.diag(matrix))
    (shades,) = shown_images(figure)
    assert np.array_equal(np.isnan(shades), np.eye(n_classes))
    np.testing.assert_allclose(np.nan_to_num(shades), errors / errors.max(), rtol=1e-6)
    for places, numbers in written(figure, np.unique(matrix)):
        assert [matrix[row, column] for column, row in places.astype(int)] == numbers
        assert len(numbers) == np.count_nonzero(matrix)
    assert bool(written(figure, np.unique(matrix))) == (n_classes <= figures.MAX_NUMBERED)
    assert f"{errors[0].sum():,} of {matrix[0].sum():,}" in drawn


LONG = [(60_000 // e, 20_000 // e + e % 7, 3000 // e + 40) for e in range(1, 801)]


@pytest.mark.parametrize(
    ("errors", "rate"),
    [(LONG, 1e-3), ([(0, 0, 0)] * 3, 3e38), ([(9, 0, 700)], 2e-45), ([(7, 3, 2), (5, 4, 0)], 1)],
)
def test_learning_curves(errors, rate):
    history = make_history(errors, rate=rate)
    figure = figures.learning_curves(history)
    drawn = texts_of(figure)
    upper, lower = figure.axes
    lines, (low, high) = {line.get_label(): line for line in upper.lines}, upper.get_ylim()
    names = {"training": "training (deformed)", "validation": "validation", "test": "test"}
    for name, label in names.items():
        values = [getattr(m, f"{name}_error") for m in history]
        np.testing.assert_allclose(lines[label].get_ydata(), values, rtol=1e-14)
        assert lines[label].get_xdata().tolist() == [m.epoch for m in history]
        assert low <= min(values) and max(values) <= high
    assert lower.lines[0].get_ydata().tolist() == [m.learning_rate for m in history]
    best = min(reversed(history), key=lambda m: m.validation_errors)
    assert upper.lines[-1].get_xdata() == [best.epoch]
    assert any(f"after epoch {best.epoch} of {len(history)}" in text for text in drawn)


def test_curves_that_are_not_drawn_or_called_held_out():
    """Epochs without validation leave that curve as it is."""
    figure = figures.learning_curves(make_history([(9, 5, 0), (5, 4, 0)], n_test=0))
    assert not any("test" in text for text in texts_of(figure))
    history = make_history([(9, 5, 3), (5, 4, 2)])
    text = " ".join(texts_of(figures.learning_curves(history, held_out=60)))
    assert "held-out error" in text and "test" not in text
    n = 50
    validation = [9 - k // 40 if k % 40 == 0 else None for k in range(n)]
    figure = figures.learning_curves(make_history([(9, each, 3) for each in validation]))
    lines = {each.get_label(): each for each in figure.axes[0].lines}
    assert lines["validation"].get_xdata().tolist() == list(range(1, n + 1, 40))
    np.testing.assert_allclose(lines["validation"].get_ydata(), [9 / 600, 8 / 600])
    np.testing.assert_allclose(lines["test"].get_ydata(), [3 / 100] * n)


def test_figures_name_the_network_and_its_data():
    """Also data whose name is long, or looks like a formula."""
    history = make_history([(9, 5, 3)], deforming=0)
    title = layout.title_of(Network((841, 1000, 500, 10)), "costs $5 and $6")
    assert title == "net1 (841-1000-500-10) on costs $5 and $6"
    assert title in texts_of(figures.learning_curves(history, title=title))
    network = Network((841, *[1000] * 9, 256))
    deep = layout.title_of(network, "a folder with a long name, as many are")
    assert deep in texts_of(figures.confusion(make_evaluation(30, 3, 0.5), deep))


@pytest.mark.parametrize("n", [9, 150])
def test_the_first_layer_by_norm(n):
    network = Network((35, n, 3), seed=1)
    network.weights[0][2] *= 5
    figure = figures.first_layer(network, (7, 5))
    drawn, images = texts_of(figure), tiles_of(figure)
    assert len(images) == min(n, 100)
    limit = float(drawn[drawn.index("0") + 1])  # of the colours
    expected = np.clip(network.weights[0][2].reshape(7, 5) / limit, -1, 1)
    assert np.allclose(images[0], expected, atol=0.05)
    norms = [np.linalg.norm(image.astype(float)) for image in images]
    assert norms == sorted(norms, reverse=True)
    texts_of(figures.first_layer(Network((35, n, 3)), (7, 5)))  # of zeros
