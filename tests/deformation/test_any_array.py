"""Arrays of any type, by the deformer and by what the transforms call: as SciPy looks them up.

Each deforms one image (h, w, channels), and what belongs to it, by the map of a seed.
`test_deformation.py` compares the fields with the paper.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from mlpcore import DeformationParameters, ElasticDeformer, InputError, backends, deformation
from mlpcore.deformation.targets import move_boxes, move_points
from mlpcore.transforms.single import RandomMap, channels_last

HEIGHT, WIDTH = 9, 12

#: Of pixels from 0 to 1: coordinates of up to 40 pixels with 64 roundings to float32, between
#: pixels of slope 1 in x and in y.
OFF = 2 * 64 * 2**-24 * 40

#: Float32 holds all whole numbers up to here.
EXACT = 2**24

STILL = DeformationParameters(alpha=0, beta=0, gamma=0, similar_labels=())
USUAL = DeformationParameters(similar_labels=())
KINDS = STILL, USUAL, DeformationParameters(9, 90, 40, 40, ())
DRAWN = {"parameters": st.sampled_from(KINDS), "seed": st.integers(0, 2**63)}


class Deformer:
    """`ElasticDeformer`, for sets of one image."""

    def __init__(self, parameters, seed):
        settings = {**parameters.get_params(), "random_state": seed, "channels": "last"}
        self.deformer = ElasticDeformer(**settings).fit(np.ones((1, HEIGHT, WIDTH, 2)))

    def image(self, image, fill=None):
        return self.deformer.set_params(background=fill).fit_transform(image[None])[0]

    def mask(self, mask, fill):
        return self.deformer.deform_masks(mask[None], background=fill)[0]

    def points(self, points):
        return self.deformer.deform_keypoints(points[None])[0]


class Map:
    """The maps that the transforms call."""

    def __init__(self, parameters, seed):
        self.map = RandomMap((parameters, parameters), seed)

    def image(self, image, fill=None):
        return channels_last(self.map.image, image, fill)

    def mask(self, mask, fill):
        planes = self.map.mask(np.moveaxis(mask, -1, 0), fill, 2)
        assert planes.flags.c_contiguous  # which the `view` of a tensor needs
        return channels_last(self.map.mask, mask, fill)

    def points(self, points):
        return self.map.points(points, HEIGHT, WIDTH)


entries = pytest.mark.parametrize("entry", [Deformer, Map])


def field_of(parameters, seed):
    """The field (2, h, w) of the first image of a set, x before y."""
    place = (HEIGHT, WIDTH), np.zeros(1, int), np.zeros(1, np.uint8)
    return deformation.displacements(*place, parameters, seed, 0, backends.get("cpu", 1))[0]


@st.composite
def arrays(draw, types):
    """An image (9, 12, 2) with any strides, of a type and with values of any size."""
    dtype = np.dtype(draw(st.sampled_from(types)))
    shares = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1001, HEIGHT * WIDTH * 2)
    if dtype.kind == "f":
        ends = (0, 1), (-1, 1), (0, 255), (1, 0), (-0.1, 0), (900, 901), (0, 1e-3)
        low, high = draw(st.sampled_from(ends if dtype.itemsize == 2 else (*ends, (0, 1e30))))
        values = [low + (high - low) * share / 1000 for share in shares.tolist()]
    else:
        limits = np.iinfo("u1" if dtype.kind == "b" else dtype)
        least, most = int(limits.min), 1 if dtype.kind == "b" else int(limits.max)
        near = st.sampled_from([0, 255, 2**16, EXACT, 2**31 - 1, 2**53, least, most])
        ends = [draw(near) + draw(st.integers(-2, 2)) for _ in range(2)]
        low, high = sorted(min(max(end, least), most) for end in ends)
        values = [low + (high - low) * share // 1000 for share in shares.tolist()]
    image = np.array(values, dtype).reshape(HEIGHT, WIDTH, 2)
    strided = [image, np.asfortranarray(image), np.repeat(image, 2, 1)[:, ::2], image[::-1][::-1]]
    return draw(st.sampled_from(strided))


@entries
@given(image=arrays((*"?bBhHiIqQefd", ">i4", ">f4", ">f8")), filled=st.booleans(), **DRAWN)
def test_images(entry, image, parameters, seed, filled):
    """Of the same type, rounded to the nearest, and within the range of image and background."""
    low, high = +image.min().item(), +image.max().item()
    fill = high if filled else None
    if image.dtype.kind in "ui" and (low < -EXACT or high > EXACT):
        with pytest.raises(InputError, match=r"holds .*: expected whole numbers from "):
            entry(parameters, seed).image(image, fill)
        return
    result = entry(parameters, seed).image(image, fill)
    assert result.dtype == image.dtype and result.shape == image.shape
    if parameters.is_identity and image.dtype not in ("<f8", ">f8"):
        assert np.array_equal(result, image)
    assert np.all((result >= low) & (result <= high))
    at = np.mgrid[:HEIGHT, :WIDTH] + field_of(parameters, seed)[::-1]
    for channel in range(2):
        plane, shown = image[..., channel].astype(float), result[..., channel].astype(float)
        border = np.concatenate([plane[0], plane[-1], plane[:, 0], plane[:, -1]])
        value = float(high) if filled else float(np.sort(border)[len(border) // 2])
        exact = map_coordinates(plane, at, order=1, mode="grid-constant", cval=value)
        size = max(abs(float(low)), abs(float(high)))
        off = OFF * (float(high) - float(low)) + 2**-22 * size
        off += 0.5 if image.dtype.kind != "f" else float(np.finfo(image.dtype).eps) * size
        assert np.abs(shown - exact).max() <= off


@entries
@given(mask=arrays(["?", "u1", "i4", "i8", "f4"]), **DRAWN)
def test_masks_and_points(entry, mask, parameters, seed):
    """Each pixel is the nearest one at its source, and none is rounded to float32."""
    fill = 1 if mask.dtype.itemsize == 1 else 2**31 - 1
    moved = entry(parameters, seed).mask(mask, fill)
    assert moved.dtype == mask.dtype
    field = field_of(parameters, seed)
    y, x = np.rint(np.mgrid[:HEIGHT, :WIDTH] + field[::-1]).astype(int)
    padded = np.pad(mask, ((99, 99), (99, 99), (0, 0)), constant_values=fill)
    assert np.array_equal(moved, padded[y + 99, x + 99])
    for dtype in ("i8", "f4", "f8"):
        points = np.array([[2, 7], [-1, 0], [11, 8]], dtype)
        moved = entry(parameters, seed).points(points)
        assert np.allclose(moved, move_points(points, field), rtol=0, atol=1e-5)  # maybe float32
        assert np.array_equal(moved, points) == (parameters == STILL)


def test_displacements_that_differ_in_x_and_in_y():
    """Each is that of its own parameters. Images are looked up by both, and boxes move by both."""
    weak, strong = USUAL.set_params(alpha=9, beta=0), USUAL.set_params(beta=0)
    both, boxes = RandomMap((weak, strong), 5), np.array([[2, 1, 7, 5], [0, 0, 12, 9]])
    field = both.displacement(HEIGHT, WIDTH)
    assert np.array_equal(both.boxes(boxes, HEIGHT, WIDTH), move_boxes(boxes, field))
    assert np.array_equal(field, [field_of(weak, 5)[0], field_of(strong, 5)[1]])
    image = np.random.default_rng(0).integers(0, 256, (2, HEIGHT, WIDTH)).astype(np.uint8)
    shown = both.image(image, (7, 9), 2)
    at = np.mgrid[:HEIGHT, :WIDTH] + field[::-1]
    for plane, found, fill in zip(image, shown, (7, 9)):
        exact = map_coordinates(plane.astype(float), at, order=1, mode="grid-constant", cval=fill)
        assert np.abs(found - exact).max() <= 0.5 + 255 * OFF
