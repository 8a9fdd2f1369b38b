"""`mlpcore.load`: what it takes, what its object makes of pictures and arrays, refusals."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from PIL import Image

import mlpcore
import pictures
from mlpcore import Dataset, PictureWarning, backends
from mlpcore.data.digit import find_digit
from mlpcore.data.pixels import MNIST_PIXELS, PixelSpec
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.probabilities import of_outputs
from mlpcore.inference import classifier
from mlpcore.store.documents import to_metadata
from mlpcore.store.run_folder import BEST
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import write_network
from oracle import random_network
from pictures import DIGITS
from small_runs import finish_run, make_config, make_pixels, refusal

PAPER = [pictures.as_bytes(pictures.written(pictures.enlarged(digit))) for digit in DIGITS[:4]]
PIXELS = np.stack([find_digit(grey).pixels for grey in PAPER])  # (4, 28, 28)
IMAGES = MNIST_PIXELS.to_images(PIXELS)

pytestmark = pytest.mark.usefixtures("in_folder")


def save(name, network=None, pixels=MNIST_PIXELS, data="MNIST", **changes):
    """A file of weights of a network with random weights."""
    network = network or random_network((841, 12, 10), 1, **changes)
    write_network(name, network, to_metadata(data=data, pixels=pixels))
    return name


def expected_outputs(path):
    trained = TrainedNetwork.read(path)
    inputs = trained.pixels.to_inputs(IMAGES)
    return evaluation.outputs(trained.network, inputs, backends.get("scalar", 1))


def load(*sources):
    return mlpcore.load(sources[0] if len(sources) == 1 else sources, backend="scalar", threads=1)


def write_pictures():
    Path("scans").mkdir()
    for number, grey in enumerate(PAPER):
        Path(f"scans/{number}.png").write_bytes(pictures.encoded(grey))


def test_every_form_of_the_same_pictures():
    """One picture is one row."""
    write_pictures()
    net, expected = load(save("n.safetensors")), expected_outputs("n.safetensors").argmax(axis=1)
    paths = [f"scans/{number}.png" for number in range(4)]
    files = (Path(paths[0]), Image.fromarray(PAPER[1]), *paths[2:])
    rows = PIXELS.reshape(4, 784).astype(np.int64)
    for given in "scans", files, PIXELS, PIXELS.tolist(), rows:
        np.testing.assert_array_equal(net.to_images(given), IMAGES)
        np.testing.assert_array_equal(net.predict(given), expected)
    for one in "scans/2.png", Image.fromarray(PAPER[2]), PIXELS[2]:
        np.testing.assert_array_equal(net.to_images(one), IMAGES[2:3])


@pytest.mark.parametrize("losses", [("squared", "squared"), ("cross-entropy", "squared")])
def test_committees(losses):
    """Each member sees its own range; those of both losses average probabilities."""
    unit = structs.replace(MNIST_PIXELS, input_range="unit")
    save("a.safetensors", loss=losses[0])
    save("b.safetensors", random_network((841, 10), 2, loss=losses[1]), unit)
    save("c.safetensors", random_network((841, 10), 3, loss=losses[0]))
    paths = "a.safetensors", Path("b.safetensors"), "c.safetensors"
    net, each = load(*paths), [expected_outputs(path) for path in paths]
    if losses[0] != losses[1]:
        each[1] = of_outputs(each[1])
    np.testing.assert_allclose(net.outputs(IMAGES), np.mean(each, 0))
    probabilities = net.predict_proba(PIXELS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)  # float32 softmax
    assert probabilities.argmax(axis=1).tolist() == net.predict(PIXELS).tolist()
    assert net.predict_proba(PIXELS[:0]).shape == (0, 10)


def test_pretrained_is_the_package_s_unless_a_path_is_meant():
    assert load("pretrained").networks[0].path == classifier.PRETRAINED_FILE
    Path("pretrained").mkdir()
    for path in "./pretrained", Path("pretrained"):
        assert "holds no best.safetensors" in refusal(load, path)


def test_what_is_warned_of():
    """Two digits or none, and arrays with a light border, unless other data were learnt."""
    pair = pictures.written(np.hstack([pictures.enlarged(digit) for digit in DIGITS[:2]]))
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 90), np.uint8))
    arrays = np.concatenate([PIXELS, 255 - PIXELS[:2]])
    net = load(save("n.safetensors"))
    for method, given, words in (
        (net.predict, Image.fromarray(pictures.as_bytes(pair)), "picture seems to show 2 digits"),
        (net.predict_proba, noise, "the picture probably shows no digit"),
        (net.predict_proba, arrays, "2 of 6 arrays with a light border"),
        (net.to_images, arrays, "2 of 6 arrays with a light border"),
    ):
        with pytest.warns(PictureWarning, match=words) as caught:
            method(given)
        assert caught[0].filename == __file__
    letters = load(save("letters.safetensors", data="letters"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each, given in (net, PIXELS), (letters, arrays), (letters, noise):
            each.predict(given)
        net.predict(Image.fromarray(PAPER[0]))


REFUSED = [
    ("predict", "text.png", "text.png"),
    ("predict", "scans", "scans/9.png"),
    ("predict", "empty", "holds no pictures"),
    ("predict", None, "pixels is None: expected an array"),
    ("predict", ["scans/0.png", PIXELS[0]], "array([["),
    ("predict", Image.fromarray(np.full((50, 50), 255, np.uint8)), "the picture: no digit"),
    ("predict", PIXELS / 255, "float64: expected whole numbers from 0 to 255"),
    ("predict", PIXELS.astype(int) * 2, "510"),
    ("predict", PIXELS[None], "(1, 4, 28, 28): expected pixels (n, 28, 28)"),
    ("predict", np.stack(PAPER), "PIL.Image.fromarray"),
    ("predict", IMAGES, "by predict_images"),
    ("predict_images", PIXELS, "0 to 255: expected -1 (the background) to 1, as a Dataset holds"),
    ("predict_images", IMAGES[:, :28], "expected float32 of shape (any, 29, 29)"),
    ("predict_images", IMAGES * np.float32(np.nan), "finite"),
    ("load", [], "at least one"),
    ("load", 5, "5: expected"),
    ("load", "no", "no does not exist: expected"),
    ("load", ["n.safetensors", "wide.safetensors"], "has different classes"),
    ("load", ["wide.safetensors", "tall.safetensors"], "images of 9 x 7: expected 7 x 9"),
]


@pytest.mark.parametrize(("method", "given", "part"), REFUSED)
def test_what_is_refused(method, given, part):
    write_pictures()
    Path("scans/9.png").touch()
    Path("text.png").write_text("7")
    Path("empty").mkdir()
    save("wide.safetensors", random_network((63, 3), 1), PixelSpec((7, 9), (6, 9)))
    save("tall.safetensors", random_network((63, 3), 1), PixelSpec((9, 7), (9, 6)))
    net = load(save("n.safetensors"))
    message = refusal(mlpcore.load if method == "load" else getattr(net, method), given)
    assert part in message and "expected" in message


def test_outputs_that_are_not_finite_are_refused():
    network = random_network((841, 5, 10), 1, activation="relu", loss="cross-entropy")
    for weights in network.weights:
        weights *= np.float32(1e38)
    assert "outputs are not finite" in refusal(load(save("n.safetensors", network)).outputs, IMAGES)


def test_an_evaluation_by_parts_is_that_of_all(monkeypatch):
    data, networks = Dataset.from_arrays(*make_pixels(60, 1)), []
    for seed in (1, 2):
        networks.append(save(f"{seed}.safetensors", random_network((35, 8, 3), seed), data.pixels))
    net = load(*networks)
    whole, members = net.evaluate(data.train_images, data.train_labels)
    monkeypatch.setattr(evaluation, "BATCH", 7)
    again, each = net.evaluate(data.train_set, data.train_labels)
    assert again.to_json() == whole.to_json() and 0 < whole.errors < whole.n
    assert [one.to_json() for one in each] == [one.to_json() for one in members]


@pytest.mark.parametrize("dtype", [float, int])
def test_a_run_its_weights_and_its_export_know_the_data(dtype):
    """Its values, classes and target. Sides may be odd already."""
    pixels, labels = make_pixels(60, 1, height=8, width=9)
    values, names = (pixels // 16).astype(dtype), np.array(["crow", "owl", "tit"])
    data = Dataset.from_arrays(values, names[labels], values[:9], names[labels[:9]])
    finish_run("run", make_config(epochs=1, backend="scalar", target=1.5), data)
    mlpcore.export("run", "exported.safetensors")
    for source in "run", f"run/{BEST}", "exported.safetensors":
        net = load(source)
        for given in (values[:9], values[:9].reshape(9, -1)):
            np.testing.assert_array_equal(net.to_images(given), data.test_images)
        np.testing.assert_array_equal(net.to_images(values[3]), data.test_images[3:4])
        outputs = net.outputs(data.test_images)
        np.testing.assert_array_equal(net.predict_proba(values[:9]), of_outputs(outputs, 1.5))
        assert net.predict(values[:9]).tolist() == names[outputs.argmax(axis=1)].tolist()
        assert net.predict(values[:0]).shape == (0,)
        assert "0 to 15" in refusal(net.predict, values * 16)
        assert "expected real numbers" in refusal(net.predict, values * 1j)
        picture = refusal(net.predict, Image.fromarray(PAPER[0]))
        assert "for images of 9 x 9 pixels takes arrays" in picture
    finish_run("usual", make_config(epochs=1, backend="scalar", seed=2), data)
    both = load("run", "usual")
    outputs = both.outputs(data.test_images)
    np.testing.assert_array_equal(both.to_probabilities(outputs), of_outputs(outputs, 1.25))
