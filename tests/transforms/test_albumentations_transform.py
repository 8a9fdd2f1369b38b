"""The transform for Albumentations: images, masks, keypoints and boxes, by the same map."""

import pickle

import numpy as np
import pytest

from mlpcore import InputError

A = pytest.importorskip("albumentations")

from mlpcore.transforms.albumentations import ElasticDeformation  # noqa: E402

WHITE = np.zeros((40, 50, 3), np.uint8)
WHITE[14:26, 15:36] = 255
MASK = WHITE[..., 0] // 51


def make_pipeline(seed=0, p=1, **settings):
    return A.Compose(
        [ElasticDeformation(p=p, **settings)],
        keypoint_params=A.KeypointParams("xy", remove_invisible=False),
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"]),
        seed=seed,
    )


def deformed(image=WHITE, mask=MASK, keypoints=((15, 14),), seed=0, **settings):
    boxes = {"bboxes": [(15, 14, 36, 26)], "labels": [7]}
    return make_pipeline(seed, **settings)(image=image, mask=mask, keypoints=keypoints, **boxes)


def test_a_sample_gets_one_map():
    shown = deformed()
    image, mask = shown["image"][..., 0], shown["mask"]
    assert shown["image"].shape == WHITE.shape and image.dtype == mask.dtype == np.uint8
    sure = np.abs(image.astype(int) - 127) > 126
    assert np.array_equal(image[sure] > 127, mask[sure] == 5)
    assert set(np.unique(mask)) == {0, 5}  # nothing between
    assert not np.array_equal(mask, MASK)
    rows, columns = np.nonzero(mask)
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert np.abs(np.subtract(shown["bboxes"][0], found)).max() < 1
    assert shown["labels"] == [7]


def test_channels_and_fills():
    assert np.array_equal(deformed(WHITE[..., 0])["image"], deformed()["image"][..., 0])
    paper = np.full((40, 50, 3), [250, 240, 220], np.uint8)
    strong = {"alpha": 0, "beta": 80, "gamma": 0, "seed": 1}
    assert np.array_equal(deformed(paper, **strong)["image"], paper)
    masks = np.stack([MASK, MASK], axis=-1)
    shown = deformed(paper, masks, fill=(1, 2, 3), fill_mask=(8, 9), **strong)
    assert shown["image"][0, 0].tolist() == [1, 2, 3]
    assert shown["mask"][0, 0].tolist() == [8, 9]
    along_x = deformed(alpha=(90, 0), beta=0, gamma=0)
    assert along_x["keypoints"][0][1] == pytest.approx(14)
    assert not np.array_equal(along_x["image"], WHITE)


def test_probability_seeds_and_pickles():
    assert np.array_equal(deformed(p=0)["image"], WHITE)
    assert not np.array_equal(deformed(seed=1)["image"], deformed()["image"])
    transform = pickle.loads(pickle.dumps(ElasticDeformation(alpha=20, p=1)))
    transform.set_random_seed(3)
    first, second = (transform(image=WHITE)["image"] for _ in range(2))
    assert not np.array_equal(first, second)
    transform.set_random_seed(3)
    assert np.array_equal(transform(image=WHITE)["image"], first)
    assert "alpha=20" in repr(transform)


@pytest.mark.parametrize("settings", [{"sigma": (5, 6)}, {"fill_mask": "black"}, {"fill": np.inf}])
def test_what_is_refused(settings):
    with pytest.raises(InputError, match=rf"^{next(iter(settings))}\b.*expected a"):
        ElasticDeformation(**settings)
    with pytest.raises(InputError, match="keypoints: expected finite"):
        ElasticDeformation().apply_to_keypoints(np.array([[0, np.inf]]), seed=0, shape=(9, 9))
    with pytest.raises(InputError, match="a mask of 20 x 50 pixels: expected 40 x 50"):
        ElasticDeformation(p=1)(image=WHITE, mask=MASK[:20])
