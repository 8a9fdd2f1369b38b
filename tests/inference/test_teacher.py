"""A teacher: what it is shown, what it answers, what names it, whom it cannot teach."""

import dataclasses

import numpy as np
import pytest

from mlpcore import TrainingConfig, backends, dataset
from mlpcore.data.scaling import BACKGROUNDS
from mlpcore.deformation import IDENTITY, deform
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.probabilities import of_outputs
from mlpcore.inference import Teacher
from mlpcore.store.inputs import NetworkInput
from mlpcore.store.weights import read_network, write_network
from oracle import random_network
from small_runs import refusal

DIGITS = dataset.load(name="digits")
DATA = dataclasses.replace(
    DIGITS, train_images=DIGITS.train_images[:230], train_labels=DIGITS.train_labels[:230]
)
INPUT = NetworkInput("MNIST", (29, 29), (28, 28))
VIEWS = {
    "as the student": ("unit", None),
    "narrower": ("unit", 14),
    "of another range": ("signed", None),
    "of both": ("signed", 18),
}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def save(name, view, seed=1, loss="cross-entropy", **changes):
    input_range, width = view
    seen = dataclasses.replace(INPUT, input_range=input_range, width=width, **changes)
    network = random_network((841, 12, 10), seed, loss=loss)
    write_network(name, network, seen.to_metadata())
    return name


def student(**changes):
    return TrainingConfig(input_range="unit", seed=6, **changes)


def deformed(images, config, epoch):
    """A whole training set, as an epoch of the student shows it, from inputs of `config`."""
    ranged = BACKGROUNDS[config.input_range]
    backend = backends.get("scalar", 1)
    arguments = config.deformation, config.seed, epoch, backend
    return deform(images, DATA.train_labels, *arguments, background=ranged)


def prepared(sources, config):
    teacher = Teacher(sources, backend="scalar", threads=1)
    teacher.prepare(config, DATA)
    return teacher


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_network_sees_its_own_view_of_the_same_deformed_image(view):
    """Brought to its width and range first, and deformed by the student's map then."""
    config, path, epoch = student(), save("n.safetensors", view), 3
    own = dataclasses.replace(config, input_range=view[0], width=view[1])
    images = DATA.with_width(view[1]).with_range(view[0]).train_images
    inputs = deformed(images, own, epoch)
    network = read_network(path)[0]
    expected = evaluation.outputs(network, inputs, backends.get("scalar", 1))
    shown = deformed(DATA.with_range("unit").train_images, config, epoch)
    teacher = prepared(path, config)
    for part in (slice(0, 230), slice(90, 217)):
        found = teacher.probabilities(part, shown[part], epoch)
        np.testing.assert_array_equal(found, expected[part])
    other = teacher.probabilities(slice(0, 230), shown, epoch + 1)
    assert np.array_equal(other, expected) == (view == ("unit", None))  # which sees `shown`


def test_a_student_without_deformation_has_a_teacher_without():
    path, config = save("n.safetensors", ("signed", None)), student(deformation=IDENTITY)
    found = prepared(path, config).probabilities(slice(5, 9), None, 0)
    network, backend = read_network(path)[0], backends.get("scalar", 1)
    expected = evaluation.outputs(network, DATA.train_images[5:9], backend)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("losses", [("squared", "squared"), ("cross-entropy", "squared")])
def test_several_answer_with_the_mean_as_a_committee(losses):
    config = student(deformation=IDENTITY)
    images, part = DATA.with_range("unit").train_images[:20], slice(0, 20)
    paths = [save(f"{i}", ("unit", None), i, loss) for i, loss in enumerate(losses)]
    backend = backends.get("scalar", 1)
    outputs = [evaluation.outputs(read_network(path)[0], images, backend) for path in paths]
    if losses[0] == "squared":
        expected = of_outputs(np.mean(outputs, axis=0))
    else:
        expected = (outputs[0] + of_outputs(outputs[1])) / 2
    found = prepared(paths, config).probabilities(part, images, 0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)  # sums in another order
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-6)  # float32 softmax


def test_the_checksum_is_of_weights_and_views():
    a = Teacher(save("a", ("unit", None)))
    assert len(a.sha256) == 64
    assert Teacher(save("copy", ("unit", None))).sha256 == a.sha256
    others = [
        Teacher(save("b", ("unit", None), seed=2)),
        Teacher(save("c", ("signed", None))),
        Teacher(save("d", ("unit", 14))),
        Teacher(["a", "copy"]),
    ]
    assert len({each.sha256 for each in (a, *others)}) == 5


def test_the_settings_name_it(tmp_path):
    teacher = Teacher([save("a", ("unit", None)), "pretrained"])
    teaching = teacher.teaching(0.9)
    assert teaching.paths == (str(tmp_path / "a"), "pretrained")
    assert (teaching.sha256, teaching.weight) == (teacher.sha256, 0.9)
    assert TrainingConfig.from_json(student(teacher=teaching).to_json()).teacher == teaching


def test_other_images_and_classes_are_refused():
    path = save("n.safetensors", ("unit", None))
    few = dataclasses.replace(DATA, n_classes=3, classes=(0, 1, 2))
    named = dataclasses.replace(DATA, classes=tuple("abcdefghij"))
    small = dataclasses.replace(DATA, train_images=DATA.train_images[:, :9, :9].copy())
    teacher = Teacher(path, backend="scalar", threads=1)
    for data, wanted in (
        (few, "3 classes (0, 1, 2)"),
        (named, "10 classes (a, "),
        (small, "9 x 9"),
    ):
        line = refusal(teacher.prepare, student(), data)
        assert "n.safetensors: knows images of 29 x 29 and 10 classes (0, 1, " in line
        assert wanted in line.partition("expected")[2]
