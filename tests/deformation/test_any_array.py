"""Arrays of any kind, by every entry: as SciPy looks them up in the displacements, or refused.

An entry deforms one image (h, w, channels), the first of a set, and what belongs to it, by the map
of a seed. `test_deformation.py` compares the fields with the paper.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from mlpcore import DeformationParameters, ElasticDeformer, InputError, backends, deformation
from mlpcore.deformation.targets import move_boxes, move_points
from mlpcore.transforms.single import RandomMap

HEIGHT, WIDTH = 9, 12

#: Of pixels from 0 to 1: coordinates of up to 40 pixels with 64 roundings to float32, between
#: pixels of slope 1 in x and in y.
OFF = 2 * 64 * 2**-24 * 40

TYPES = (*"?bBhHiIqQefd", ">i4", ">f4", ">f8")

#: What must work: numbers up to here, in the deformer at most so far apart.
SURE = 2**23

STILL = DeformationParameters(alpha=0, beta=0, gamma=0, similar_labels=())
PARAMETERS = [
    STILL,
    DeformationParameters(similar_labels=()),
    DeformationParameters(9, 90, 40, 40, ()),
]


class Deformer:
    """`ElasticDeformer`, for images of a shape."""

    def __init__(self, shape):
        self.shape = shape
        self.channels = {"last": "last", "first": "first"}.get(shape)

    def fit(self, image, parameters, seed, fill=None):
        settings = {"random_state": seed, "channels": self.channels, "background": fill}
        sides = {"image_shape": (HEIGHT, WIDTH)} if self.shape == "flat" else {}
        deformer = ElasticDeformer(**settings, **sides).set_params(**parameters.get_params())
        return deformer.fit(self.given(image))

    def given(self, image):
        """The image as it is passed: a set of one, or of its channels."""
        if self.shape == "last":
            return image[None]
        planes = np.moveaxis(image, -1, 0)
        if self.shape == "first":
            return planes[None]
        return planes.reshape(len(planes), -1) if self.shape == "flat" else planes

    def image(self, image, parameters, seed, fill=None):
        images = self.given(image)
        deformer = self.fit(image, parameters, seed, fill)
        result = deformer.deform(images, indices=[0] * len(images))
        assert result.shape == images.shape
        if self.shape == "last":
            return result[0]
        return np.moveaxis(result.reshape(-1, HEIGHT, WIDTH), 0, -1)

    def mask(self, mask, parameters, seed, fill):
        deformer = self.fit(np.ones((HEIGHT, WIDTH, 2)), parameters, seed)
        masks = np.moveaxis(mask, -1, 0)
        if self.channels:
            masks = self.given(mask)
        moved = deformer.deform_masks(masks, indices=[0] * len(masks), background=fill)
        return moved[0] if self.shape == "last" else np.moveaxis(np.squeeze(moved), 0, -1)

    def points(self, points, parameters, seed):
        deformer = self.fit(np.ones((HEIGHT, WIDTH, 2)), parameters, seed)
        return deformer.deform_keypoints(points[None])[0]


class Map:
    """What the transforms call."""

    def image(self, image, parameters, seed, fill=None):
        planes = np.moveaxis(image, -1, 0)
        shown = RandomMap((parameters, parameters), seed).image(planes, fill, len(planes))
        return np.moveaxis(shown, 0, -1)

    def mask(self, mask, parameters, seed, fill):
        planes = np.moveaxis(mask, -1, 0)
        moved = RandomMap((parameters, parameters), seed).mask(planes, fill, len(planes))
        return np.moveaxis(moved, 0, -1)

    def points(self, points, parameters, seed):
        return RandomMap((parameters, parameters), seed).points(points, HEIGHT, WIDTH)


ENTRIES = {"map": Map()} | {each: Deformer(each) for each in ("grey", "flat", "last", "first")}
entries = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


def field_of(parameters, seed):
    """The field (2, h, w) of the first image of a set, x before y."""
    place = (HEIGHT, WIDTH), np.zeros(1, int), np.zeros(1, np.uint8)
    return deformation.displacements(*place, parameters, seed, 0, backends.get("cpu", 1))[0]


@st.composite
def arrays(draw, types):
    """An image (9, 12, 2) with any strides, of a type and with values of any size."""
    dtype = np.dtype(draw(st.sampled_from(types)))
    if dtype.kind == "f":
        ends = (0, 1), (-1, 1), (0, 255), (1, 0), (-0.1, 0), (900, 901), (0, 1e-3)
        low, high = draw(st.sampled_from(ends if dtype.itemsize == 2 else (*ends, (0, 1e30))))
    else:
        limits = np.iinfo("u1" if dtype.kind == "b" else dtype)
        least, most = int(limits.min), 1 if dtype.kind == "b" else int(limits.max)
        near = st.sampled_from([0, 255, 2**16, SURE, 2**24, 2**31 - 1, 2**53, least, most])
        ends = [draw(near) + draw(st.integers(-2, 2)) for _ in range(2)]
        low, high = sorted(min(max(end, least), most) for end in ends)
    shares = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1001, HEIGHT * WIDTH * 2)
    of_floats = dtype.kind == "f"
    values = [low + (high - low) * share / 1000 if of_floats else low + (high - low) * share // 1000
              for share in shares.tolist()]  # fmt: skip
    image = np.array(values, dtype).reshape(HEIGHT, WIDTH, 2)
    strided = [image, np.asfortranarray(image), np.repeat(image, 2, 1)[:, ::2], image[::-1][::-1]]
    return draw(st.sampled_from(strided))


@entries
@given(
    image=arrays(TYPES),
    parameters=st.sampled_from(PARAMETERS),
    seed=st.integers(0, 2**63),
    filled=st.booleans(),
)
def test_images(entry, image, parameters, seed, filled):
    """Of the same type, rounded to the nearest, and within the range of image and background."""
    low, high = +image.min().item(), +image.max().item()
    fill = high if filled else None
    try:
        result = entry.image(image, parameters, seed, fill)
    except InputError as error:
        assert "\n" not in str(error) and image.dtype.kind in "ui"
        assert high - low > SURE or max(abs(low), abs(high)) > 2**24
        return
    assert result.dtype == image.dtype and result.shape == image.shape
    if parameters.is_identity and (image.dtype.kind != "f" or image.dtype in ("f2", "f4")):
        assert np.array_equal(result, image)
    assert np.all((result >= low) & (result <= high)) or entry is ENTRIES["map"]
    at = np.mgrid[:HEIGHT, :WIDTH] + field_of(parameters, seed)[::-1]
    together = entry not in (ENTRIES["map"], ENTRIES["last"], ENTRIES["first"])
    for channel in range(2):
        plane, shown = image[..., channel].astype(float), result[..., channel].astype(float)
        around = image if together else image[..., channel : channel + 1]
        border = np.concatenate([around[0], around[-1], around[:, 0], around[:, -1]]).ravel()
        value = float(high) if filled else float(np.sort(border)[len(border) // 2])
        exact = map_coordinates(plane, at, order=1, mode="grid-constant", cval=value)
        size = max(abs(float(low)), abs(float(high)))
        off = OFF * (float(high) - float(low)) + 2**-22 * size
        off += 0.5 if image.dtype.kind != "f" else float(np.finfo(image.dtype).eps) * size
        assert np.abs(shown - exact).max() <= off


@pytest.mark.parametrize("low, high", [(1e6, 1e6 + 1), (0, 1e-9), (0, 1e30), (1, 0), (0, 0.1)])
def test_the_deformer_keeps_more_digits_of_a_range_than_float32(low, high):
    shares = np.random.default_rng(0).integers(0, 1025, (HEIGHT, WIDTH, 1)) / 1024
    entry, seed = ENTRIES["grey"], 3
    unit = entry.image(shares, PARAMETERS[1], seed, 0.0)
    found = entry.image(shares * (high - low) + low, PARAMETERS[1], seed, float(low))
    # 1e6 + 1 has 2^-33 of rounding in float64, far less than float32's.
    assert np.abs((found - low) / (high - low) - unit).max() <= 4 * 2**-24


@entries
@given(
    mask=arrays(["?", "u1", "i4", "f4"]),
    parameters=st.sampled_from(PARAMETERS),
    seed=st.integers(0, 2**63),
)
def test_masks(entry, mask, parameters, seed):
    """Each pixel is the nearest one at its source; 1 is around them."""
    moved = entry.mask(mask, parameters, seed, 1)
    assert moved.dtype == mask.dtype
    y, x = np.rint(np.mgrid[:HEIGHT, :WIDTH] + field_of(parameters, seed)[::-1]).astype(int)
    padded = np.pad(mask, ((99, 99), (99, 99), (0, 0)), constant_values=1)
    assert np.array_equal(moved, padded[y + 99, x + 99])


@entries
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_points(entry, dtype):
    points = np.array([[2, 7], [-1, 0], [11, 8]], dtype)
    for seed, parameters in enumerate(PARAMETERS):
        moved = entry.points(points, parameters, seed)
        expected = move_points(points, field_of(parameters, seed))
        assert np.allclose(moved, expected, rtol=0, atol=1e-5)  # a result may be float32
        assert np.array_equal(moved, points) == (parameters == STILL)


def test_boxes():
    boxes = np.array([[2, 1, 7, 5], [0, 0, 12, 9]])
    moved = RandomMap((PARAMETERS[1],) * 2, 5).boxes(boxes, HEIGHT, WIDTH)
    assert np.array_equal(moved, move_boxes(boxes, field_of(PARAMETERS[1], 5)))


def test_displacements_that_differ_in_x_and_in_y():
    """Each is that of its own parameters, and images are looked up by both."""
    weak, strong = PARAMETERS[1].set_params(alpha=9, beta=0), PARAMETERS[1].set_params(beta=0)
    field = RandomMap((weak, strong), 5).displacement(HEIGHT, WIDTH)
    assert np.array_equal(field, [field_of(weak, 5)[0], field_of(strong, 5)[1]])
    image = np.random.default_rng(0).integers(0, 256, (2, HEIGHT, WIDTH)).astype(np.uint8)
    shown = RandomMap((weak, strong), 5).image(image, (7, 9), 2)
    at = np.mgrid[:HEIGHT, :WIDTH] + field[::-1]
    for plane, found, fill in zip(image, shown, (7, 9)):
        exact = map_coordinates(plane.astype(float), at, order=1, mode="grid-constant", cval=fill)
        assert np.abs(found - exact).max() <= 0.5 + 255 * OFF


@pytest.mark.parametrize("value", [SURE + 1, 2**31 - 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_that_float32_rounds_are_refused(value):
    image = np.zeros((HEIGHT, WIDTH, 1), np.int64)
    deformer = ElasticDeformer().fit(image[..., 0][None])
    image[4, 4] = value
    for call in (deformer.deform, deformer.fit):
        with pytest.raises(InputError, match="expected whole numbers at most 8,388,608 from"):
            call(image[..., 0][None])


@pytest.mark.parametrize("offset", [0, 2**40])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_whole_numbers_keep_every_bit(offset, dtype):
    """Also in a range of real numbers, of which they are nothing."""
    images = np.random.default_rng(1).integers(0, SURE, (1, HEIGHT, WIDTH)).astype(dtype)
    images += dtype(offset)
    images[0, 0, :2] = offset, offset + SURE
    for fitted in (images, np.full(images.shape, 1e30)):
        deformer = ElasticDeformer(0, 0, 0, 0, background=offset).fit(fitted)
        assert np.array_equal(deformer.deform(images), images)


@pytest.mark.parametrize(("fill", "end"), [(-5, 0), (300, 255), (7.6, 8)])
def test_a_fill_that_the_type_lacks_becomes_the_nearest_value(fill, end):
    image = np.full((HEIGHT, WIDTH, 1), 100, np.uint8)
    shown = ENTRIES["map"].image(image, PARAMETERS[2], 5, fill)
    assert {shown.min(), shown.max()} == {100, end}
