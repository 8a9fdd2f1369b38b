"""Width normalisation, beside a plain reference and by its properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlpcore import dataset
from mlpcore.data.scaling import to_range
from mlpcore.data.width import MAX_STRETCH, THRESHOLD, UNIT, normalise_width

DIGITS = dataset.load(name="digits").train_images[:8]

#: A weight is off by at most half a unit, and a mean has at most 30 of them in either direction.
ROUNDING = 60 / UNIT


def crossing(profile, least):
    """Where a profile first exceeds `least`, from its beginning."""
    for x, value in enumerate(profile):
        if value > least:
            before = profile[x - 1] if x else 0.0
            return x - (value - least) / (value - before)
    raise AssertionError("no ink")


def middle(mass):
    return sum(x * value for x, value in enumerate(mass)) / sum(mass)


def tents(profile, mass, least, stretch_of):
    """For each result, the weight of every source, which may lie outside the image."""
    side, margin = len(mass), 1 - THRESHOLD
    begin = crossing(profile, least)
    end = side - 1 - crossing(profile[::-1], least)
    stretch, source = stretch_of(end - begin), middle(mass)
    target = (side - 1) / 2
    target += max(0.0, -margin - (target + stretch * (begin - source)))
    target -= max(0.0, target + stretch * (end - source) - (side - 1 + margin))
    reach = max(1.0, 1 / stretch)
    result = []
    for x in range(side):
        at = source + (x - target) / stretch
        sources = range(math.floor(at - reach), math.ceil(at + reach) + 1)
        weights = {i: max(0.0, 1 - abs(i - at) / reach) for i in sources}
        total = sum(weights.values())
        result.append({i: weight / total for i, weight in weights.items()})
    return result


def mean(weights, values):
    return sum(weight * values[i] for i, weight in weights.items() if 0 <= i < len(values))


def reference(image, width):
    """One image, pixel by pixel, with floats."""
    ink = [[max(0.0, float(value) + 1) for value in row] for row in image]
    columns = [list(column) for column in zip(*ink)]
    least = THRESHOLD * max(map(max, ink))
    if least == 0:
        return np.full(image.shape, -1)
    across = tents(
        list(map(max, columns)),
        list(map(sum, columns)),
        least,
        lambda box: min(width / box, MAX_STRETCH),
    )
    down = tents(list(map(max, ink)), list(map(sum, ink)), least, lambda box: 1.0)
    shifted = list(zip(*([mean(weights, column) for weights in down] for column in columns)))
    return np.array([[mean(weights, row) - 1 for weights in across] for row in shifted])


def blob(height, width, seed, share=0.2):
    """An image of random ink in a part of its pixels."""
    rng = np.random.default_rng(seed)
    ink = rng.uniform(0, 2, (height, width)) * (rng.uniform(size=(height, width)) < share)
    return (ink - 1).astype(np.float32)


@pytest.mark.parametrize("width", [1, 10, 16, 20, 29])
def test_images_are_those_of_the_reference(width):
    """Each by itself, and what is darker than the background is background."""
    blank, point, full, column = np.full((4, 29, 29), -1, np.float32)
    point[3, 25] = full[...] = column[2:27, 4] = 1
    images = np.stack([*DIGITS, blob(29, 29, 1), blank, point, full, column])
    result = normalise_width(images, width)
    assert result.dtype == np.float32 and result.flags.c_contiguous
    for image, normalised in zip(images, result):
        np.testing.assert_allclose(normalised, reference(image, width), rtol=0, atol=ROUNDING)
        darker = np.where(image == -1, np.float32(-1.5), image)
        np.testing.assert_array_equal(normalise_width(darker[None], width)[0], normalised)
    assert np.all(result[9] == -1) and not normalise_width(images[:0], width).size


@given(st.integers(2, 12), st.integers(2, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_any_image_is_that_of_the_reference(height, width, wanted, seed):
    image = blob(height, width, seed)
    wanted = min(wanted, width)
    [result] = normalise_width(image[None], wanted)
    np.testing.assert_allclose(result, reference(image, wanted), rtol=0, atol=ROUNDING)
    assert result.min() >= -1 and result.max() <= 1


def test_background_stays_exactly_background():
    result = to_range(normalise_width(DIGITS, 16), "unit")
    assert np.mean(result == 0) > 0.5 and result.max() <= 1
    far = np.abs(np.arange(29) - 14) > 14  # beyond a box of 16 pixels and its blurred edges
    assert np.all(result[:, :, far] == 0)
