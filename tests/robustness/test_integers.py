"""Images of whole numbers of any type and size: deformed right, or refused."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from mlpcore import DeformationParameters, ElasticDeformer, InputError, backends, deformation
from mlpcore.deformation.values import border_values
from mlpcore.transforms.single import RandomMap

TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i4", "?")

#: What must work: numbers up to here, in the deformer at most so far apart.
SURE = 2**23

#: Of pixels from 0 to 1: coordinates of up to 40 pixels with 64 roundings to float32, between
#: pixels of slope 1 in x and in y.
OFF = 2 * 64 * 2**-24 * 40


@st.composite
def pixels(draw):
    """An image (2, 9, 12) of a type, with values of any size; two planes."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    limits = np.iinfo("u1" if dtype.kind == "b" else dtype)
    least, most = int(limits.min), 1 if dtype.kind == "b" else int(limits.max)
    near = st.sampled_from([0, 255, 2**16, SURE, 2**24, 2**31 - 1, 2**53, least, most])
    ends = [draw(near) + draw(st.integers(-2, 2)) for _ in range(2)]
    low, high = sorted(min(max(end, least), most) for end in ends)
    shares = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1001, 2 * 9 * 12)
    values = [low + (high - low) * share // 1000 for share in shares.tolist()]
    return np.array(values, dtype).reshape(2, 9, 12), low, high


@given(
    given=pixels(),
    parameters=st.sampled_from(
        [deformation.IDENTITY, DeformationParameters(), DeformationParameters(9, 90, 40, 40)]
    ),
    seed=st.integers(0, 2**63),
    by_transform=st.booleans(),
)
def test_whole_numbers(given, parameters, seed, by_transform):
    images, low, high = given
    settings = {**parameters.get_params(), "similar_labels": ()}
    try:
        if by_transform:
            result = RandomMap((parameters, parameters), seed).image(images, None, 2)
        else:
            deformer = ElasticDeformer(**settings, random_state=seed).fit(images)
            result = deformer.deform(images, indices=[0, 0])
    except InputError as error:
        assert "\n" not in str(error)
        assert high - low > SURE or max(abs(low), abs(high)) > 2**24
        return
    assert result.dtype == images.dtype and result.shape == images.shape
    if parameters.is_identity:
        assert np.array_equal(result, images)
    backend, label = backends.get("cpu", 1), np.zeros(1, np.uint8)
    place = (9, 12), np.array([0]), label, parameters, seed, 0, backend
    at = np.mgrid[:9, :12] + deformation.displacements(*place)[0, ::-1]
    for plane, shown in zip(images, result):
        around = plane[None] if by_transform else images
        fill = float(border_values(around[None])[0])
        exact = map_coordinates(plane.astype(float), at, order=1, mode="grid-constant", cval=fill)
        rounded = OFF * (high - low) + 2**-22 * max(abs(low), abs(high))  # of float32
        assert np.abs(shown.astype(float) - exact).max() <= 0.5 + rounded
