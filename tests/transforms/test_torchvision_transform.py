"""The transform for torchvision: every kind of input, by the same map."""

import pickle

import numpy as np
import PIL.Image
import pytest

from mlpcore import InputError

torch = pytest.importorskip("torch")
tv_tensors = pytest.importorskip("torchvision.tv_tensors")
v2 = pytest.importorskip("torchvision.transforms.v2")

from mlpcore.transforms.torchvision import ElasticDeformation  # noqa: E402

#: A white rectangle on black, with its mask, corners and box.
WHITE = torch.zeros(3, 40, 50, dtype=torch.uint8)
WHITE[:, 14:26, 15:36] = 255
CORNERS = torch.tensor([[15.0, 14.0], [35.0, 25.0]])


def sample():
    return {
        "image": tv_tensors.Image(WHITE),
        "mask": tv_tensors.Mask(WHITE[0] // 51),
        "boxes": tv_tensors.BoundingBoxes([[15, 14, 21, 12]], format="XYWH", canvas_size=(40, 50)),
        "label": 7,
    }


def deformed(inputs, seed=0, **settings):
    torch.manual_seed(seed)
    return ElasticDeformation(**settings)(inputs)


def test_a_sample_gets_one_map():
    given = sample()
    shown = deformed(given)
    assert [(name, type(shown[name])) for name in shown] == [(n, type(given[n])) for n in given]
    assert shown["image"].shape == WHITE.shape and shown["image"].dtype == torch.uint8
    assert shown["label"] == 7
    image, mask = shown["image"][0].numpy(), shown["mask"].numpy()
    assert set(np.unique(mask)) == {0, 5}  # nothing between
    sure = np.abs(image.astype(int) - 127) > 126
    assert np.array_equal(image[sure] > 127, mask[sure] == 5)
    assert not torch.equal(shown["mask"], given["mask"])
    rows, columns = np.nonzero(mask)
    left, top, width, height = shown["boxes"][0].tolist()
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert shown["boxes"].format == given["boxes"].format
    # The mask's pixels are off by half of one at most, and the integers of the box by as much.
    assert np.abs(np.array([left, top, left + width, top + height]) - found).max() <= 1


@pytest.mark.parametrize("mode", ["1", "P", "LA", "I;16", "I;16B", "F"])
def test_pictures_of_all_modes(mode):
    """They keep mode and palette, and get the map that the tensor of their pixels gets."""
    grey = np.random.default_rng(0).integers(0, 250, (40, 50)).astype(np.uint8)
    if mode.startswith("I;16"):
        wide = grey.astype(">u2" if mode == "I;16B" else "<u2") * 200
        given = PIL.Image.frombytes(mode, (50, 40), wide.tobytes())
    else:
        given = PIL.Image.fromarray(grey).convert(mode)
    pixels, result = np.asarray(given), deformed(given)
    shown = np.asarray(result)
    assert (result.mode, result.size, shown.dtype) == (mode, (50, 40), pixels.dtype)
    assert not np.array_equal(shown, pixels)
    first = pixels.reshape(40, 50, -1)[..., 0].astype(pixels.dtype.newbyteorder("="))
    if mode == "P":
        assert result.getpalette() == given.getpalette()
        around = float(np.sort([*first[0], *first[-1], *first[:, 0], *first[:, -1]])[90])
        expected = deformed(tv_tensors.Mask(first), fill={tv_tensors.Mask: around})
    else:
        expected = deformed(torch.from_numpy(first))
    assert np.array_equal(shown.reshape(40, 50, -1)[..., 0], expected)


def test_a_type_that_numpy_lacks():
    expected = deformed(WHITE / 255)
    half = deformed((WHITE / 255).bfloat16())
    assert half.dtype == torch.bfloat16 and torch.abs(half - expected).max() <= 2**-8


def test_fills():
    """The paper's colour by default, or one for each channel, or for each type."""
    strong = {"alpha": 0, "beta": 80, "gamma": 0, "seed": 3}
    paper = torch.tensor([250, 240, 220], dtype=torch.uint8)[:, None, None].expand(3, 40, 50)
    assert torch.equal(deformed(paper, **strong), paper)
    assert torch.equal(deformed(paper.expand(2, 3, 40, 50), **strong)[1], paper)
    filled = deformed(paper, fill=(1, 2, 3), **strong)
    assert filled[:, 0, 0].tolist() == [1, 2, 3]
    fill = {tv_tensors.Mask: 9, PIL.Image.Image: 8, "others": 7}
    picture = PIL.Image.fromarray(paper.permute(1, 2, 0).numpy())
    shown = deformed((tv_tensors.Image(paper), sample()["mask"], picture), fill=fill, **strong)
    assert [np.asarray(each)[..., 0, 0].max() for each in shown[:2]] == [7, 9]
    assert np.asarray(shown[2])[0, 0].tolist() == [8, 8, 8]


@pytest.mark.skipif(not hasattr(tv_tensors, "KeyPoints"), reason="torchvision has no keypoints")
def test_a_pair_of_alphas_is_for_x_and_for_y():
    points = tv_tensors.KeyPoints(CORNERS, canvas_size=(40, 50))
    moved = deformed(points, sigma=[6, 6], alpha=(40, 0), beta=0, gamma=0)
    assert torch.equal(moved[:, 1], CORNERS[:, 1]) and not torch.equal(moved, CORNERS)


def test_no_objects():
    canvas = {"canvas_size": (40, 50)}
    given = [tv_tensors.BoundingBoxes(torch.zeros(0, 4), format="CXCYWH", **canvas)]
    given.append(tv_tensors.Mask(torch.zeros(0, 40, 50)))
    if hasattr(tv_tensors, "KeyPoints"):
        given.append(tv_tensors.KeyPoints(torch.zeros(0, 2), **canvas))
    for each, result in zip(given, deformed(given)):
        assert type(result) is type(each) and result.shape == each.shape


def test_pipelines_and_pickles():
    transform = v2.Compose([v2.ToImage(), pickle.loads(pickle.dumps(ElasticDeformation(alpha=20)))])
    torch.manual_seed(5)
    first, second = (transform(WHITE) for _ in range(2))
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(transform(WHITE), first)
    assert "alpha=20" in repr(transform)


def apply(*inputs, **settings):
    return lambda: ElasticDeformation(**settings)(*inputs)


def boxes(values, kind):
    return tv_tensors.BoundingBoxes(values, format=kind, canvas_size=(40, 50))


REFUSED = [
    (apply(sigma=(5, 6)), r"^sigma \(5, 6\): expected a number"),
    (apply(fill=float("nan")), "fill nan"),
    (apply(fill={torch.Tensor: float("inf")}), "fill inf"),
    (apply(torch.ones(9)), r"shape \(9,\): expected"),
    (apply(torch.full((9, 9), torch.inf)), "image holds NaN or infinity"),
    (apply(tv_tensors.Image(WHITE), tv_tensors.Mask(WHITE[0, :20])), "20 x 50 and 40 x 50 pixels"),
    (apply(sample()["mask"], sample()["boxes"], WHITE[:, :9]), "9 x 50 and 40 x 50 pixels"),
    (apply(WHITE, fill=(1, 2)), r"fill .*: expected one value, or 3"),
    (apply(torch.ones(3, 9, 9).requires_grad_()), "input is a tensor"),
    (apply(sample()["mask"], fill={tv_tensors.Mask: 0.5}), r"fill of a mask 0\.5: expected"),
    (apply(boxes([[1.0, 2, 3, float("nan")]], "XYXY")), "boxes: expected finite"),
    (lambda: apply(boxes([[9.0, 9, 5, 5, 30]], "XYWHR"))(), "XYWHR"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_is_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
