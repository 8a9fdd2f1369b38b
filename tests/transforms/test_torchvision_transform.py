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
    with pytest.raises(InputError, match="bool"):
        ElasticDeformation()(WHITE > 0)
    rotated = tv_tensors.BoundingBoxes([[9.0, 9, 5, 5, 30]], format="XYWHR", canvas_size=(40, 50))
    with pytest.raises(InputError, match="XYWHR"):
        ElasticDeformation()(WHITE, rotated)
