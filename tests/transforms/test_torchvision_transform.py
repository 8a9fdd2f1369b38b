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
    assert {name: type(each) for name, each in shown.items()} == {
        name: type(each) for name, each in given.items()
    }
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


@pytest.mark.skipif(not hasattr(tv_tensors, "KeyPoints"), reason="torchvision has no keypoints")
def test_keypoints_stay_on_corners():
    """Each corner pixel, alone in a mask, surrounds its keypoint."""
    masks = torch.zeros(2, 40, 50)
    masks[0, 14, 15] = masks[1, 25, 35] = 1
    inputs = tv_tensors.Image(masks), tv_tensors.KeyPoints(CORNERS, canvas_size=(40, 50))
    for seed in range(5):
        shown, points = deformed(inputs, seed)
        assert isinstance(points, tv_tensors.KeyPoints) and points.dtype == torch.float32
        for image, point in zip(shown, points):
            centre = [
                torch.sum(image * axis) / image.sum()
                for axis in (torch.arange(50), torch.arange(40)[:, None])
            ]
            assert torch.hypot(*(point - torch.stack(centre))) < 0.5


def test_images_of_all_kinds():
    expected = deformed(WHITE)
    assert type(expected) is torch.Tensor
    assert not torch.equal(expected, WHITE)
    assert torch.equal(deformed(tv_tensors.Image(WHITE)), expected)
    assert torch.equal(deformed(tv_tensors.Video(WHITE.expand(4, 3, 40, 50)))[2], expected)
    picture = deformed(PIL.Image.fromarray(WHITE.permute(1, 2, 0).numpy()))
    assert np.array_equal(np.asarray(picture), expected.permute(1, 2, 0))
    unit = deformed(WHITE / 255)
    assert unit.dtype == torch.float32
    assert torch.abs(unit * 255 - expected).max() <= 0.5 + 1e-4
    assert torch.equal(deformed(WHITE, fill=255)[:, 0, 0] < 255, torch.tensor([False] * 3))


def test_types_that_numpy_lacks_or_that_hold_few_values():
    expected = deformed(WHITE / 255)
    half = deformed((WHITE / 255).bfloat16())
    assert half.dtype == torch.bfloat16 and torch.abs(half - expected).max() <= 2**-8
    truth = deformed(WHITE > 0)
    assert truth.dtype == torch.bool and torch.equal(truth, expected.round() > 0)
    large = WHITE.to(torch.int32) * 2**16 + 1  # up to 2^24
    still = ElasticDeformation(alpha=0, beta=0, gamma=0)
    assert torch.equal(still(large), large)
    with pytest.raises(InputError, match="holds 1 to 16777217: expected whole numbers"):
        still(torch.where(large > 1, 2**24 + 1, large))


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
    with pytest.raises(InputError, match=r"fill .*: expected one value, or 3"):
        deformed(paper, fill=(1, 2))


@pytest.mark.skipif(not hasattr(tv_tensors, "KeyPoints"), reason="torchvision has no keypoints")
def test_a_pair_of_alphas_is_for_x_and_for_y():
    still, points = {"beta": 0, "gamma": 0}, tv_tensors.KeyPoints(CORNERS, canvas_size=(40, 50))
    both = deformed(points, alpha=40, **still)
    for axis, alpha in enumerate([(40, 0), [0, 40]]):
        moved = deformed((points, tv_tensors.Image(WHITE)), alpha=alpha, **still)
        # The inverse of a map by one axis alone is not that by both.
        assert torch.equal(moved[0][:, 1 - axis], CORNERS[:, 1 - axis])
        assert torch.abs(moved[0] - both)[:, axis].max() < 0.5 < torch.abs(both - CORNERS).max()
        changed = moved[1].float() - WHITE.float()
        assert (changed.abs().sum(dim=(0, 1)) > 0).sum() > 0
    assert torch.equal(deformed(WHITE, alpha=(30, 30)), deformed(WHITE, alpha=30))
    assert torch.equal(deformed(WHITE, sigma=[5, 5]), deformed(WHITE, sigma=5))


def test_no_objects():
    canvas = {"canvas_size": (40, 50)}
    given = [
        tv_tensors.BoundingBoxes(torch.zeros(0, 4), format=each, **canvas)
        for each in ("XYXY", "XYWH", "CXCYWH")
    ]
    if hasattr(tv_tensors, "KeyPoints"):
        given.append(tv_tensors.KeyPoints(torch.zeros(0, 2), **canvas))
    given.append(tv_tensors.Mask(torch.zeros(0, 40, 50)))
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
    still = ElasticDeformation(alpha=0, beta=0, gamma=0)(sample())
    assert all(torch.equal(still[name], sample()[name]) for name in ("image", "mask", "boxes"))


def test_bad_input():
    with pytest.raises(InputError, match="beta"):
        ElasticDeformation(beta=100)
    with pytest.raises(InputError, match="fill"):
        ElasticDeformation(fill="black")
    for fill in (float("nan"), float("inf"), (0, None), "a", {torch.Tensor: float("nan")}):
        with pytest.raises(InputError, match="fill"):
            ElasticDeformation(fill=fill)
    with pytest.raises(
        InputError, match=r"^sigma \(5, 6\): expected a number, or the same one twice"
    ):
        ElasticDeformation(sigma=(5, 6))
    with pytest.raises(InputError, match="alpha"):
        ElasticDeformation(alpha=(1, 2, 3))
    image = torch.ones(3, 9, 9)
    for bad in (image.requires_grad_(), torch.eye(9).to_sparse(), (1j * torch.eye(9)).conj()):
        with pytest.raises(InputError, match="input is a tensor"):
            ElasticDeformation()(bad)
    with pytest.raises(InputError, match=r"fill of a mask 0\.5: expected a whole number"):
        ElasticDeformation(fill={tv_tensors.Mask: 0.5})(sample()["mask"])
    nowhere = [[1.0, 2, 3, float("nan")]]
    with pytest.raises(InputError, match="boxes: expected finite"):
        ElasticDeformation()(tv_tensors.BoundingBoxes(nowhere, format="XYXY", canvas_size=(40, 50)))
    rotated = tv_tensors.BoundingBoxes([[9.0, 9, 5, 5, 30]], format="XYWHR", canvas_size=(40, 50))
    with pytest.raises(InputError, match="XYWHR"):
        ElasticDeformation()(WHITE, rotated)
