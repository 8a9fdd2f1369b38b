"""What notebooks show is complete, and holds no character of a name as HTML."""

import base64
import dataclasses
import io
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from mlpcore import Dataset, Evaluation, Trainer, backends
from mlpcore.report import html
from small_runs import DATA, make_config, make_dataset


def pictures(text):
    """The pictures in HTML, as arrays."""
    found = re.findall(r'src="data:image/png;base64,([^"]*)"', text)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(each)))) for each in found]


def cells(text):
    """The text of the cells of each row."""
    rows = re.findall("<tr>(.*?)</tr>", text)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?</td>", row)] for row in rows]


def test_a_contact_sheet():
    text = DATA._repr_html_()
    assert "230 training and 60 test images of 7 x 5, 3 classes" in text
    labels, counts = np.unique(DATA.train_labels, return_counts=True)
    _, *rows = cells(text)
    assert [(row[0], row[-1]) for row in rows] == [
        (str(label), str(n)) for label, n in zip(labels, counts)
    ]
    for label, strip in zip(labels, pictures(text), strict=True):
        assert strip.shape == (7, html.EXAMPLES * 6)  # a white column after each image
        assert (strip[:, 5::6] == 255).all()
        first = DATA.train_images[DATA.train_labels == label][: html.EXAMPLES]
        for k, image in enumerate(first):
            ink = 127.5 * (1 - image.astype(float))
            assert np.abs(strip[:, 6 * k : 6 * k + 5] - ink).max() <= 0.51  # rounded


def test_many_classes_and_large_images():
    images = np.zeros((50, 201, 101), np.float32)
    labels = np.arange(50, dtype=np.uint8)
    large = Dataset("large", images, labels, images, labels, 50, source="nowhere")
    text = large._repr_html_()
    assert len(pictures(text)) == html.MAX_CLASSES and "and 30 more classes" in text
    assert pictures(text)[0].shape[0] <= html.MAX_SIDE


def test_names_are_text():
    classes = ("<b>", "owl", "tit")
    text = dataclasses.replace(make_dataset(name="<script>&"), classes=classes)._repr_html_()
    assert "&lt;script&gt;&amp;" in text and "<script" not in text
    assert "<b>&lt;b&gt;</b>" in text and "<b>owl</b>" in text


def test_an_evaluation():
    outputs = np.array([[3, 2, 1], [3, 1, 2], [1, 2, 3], [1, 3, 2]], float)
    text = Evaluation.of(outputs, np.array([0, 2, 2, 0]))._repr_html_()
    assert "2 of 4 images, 50.00 %" in text and "The second guess is right for 1 of 2." in text
    assert cells(text) == [
        ["", "0", "1", "2", "errors"],
        ["0", "1", "1", "", "1 of 2"],
        ["1", "", "", "", "0 of 0"],
        ["2", "1", "", "1", "1 of 2"],
    ]
    many = Evaluation.of(np.eye(30), np.arange(30))._repr_html_()
    assert cells(many) == [] and len(pictures(many)) == 1


def test_a_training_before_and_after():
    trainer = Trainer(make_config(epochs=2), DATA, backends.get("scalar", 1))
    before = trainer._repr_html_()
    assert "35-9-6-3 on small" in before and "0 of 2 epochs" in before
    assert pictures(before) == []
    trainer.run()
    after = trainer._repr_html_()
    assert "2 of 2 epochs" in after and len(pictures(after)) == 1


def test_other_objects_are_refused():
    with pytest.raises(NotImplementedError, match="int"):
        html.to_html(1)


def test_arithmetic_does_without_what_people_look_at():
    code = (
        "import sys, mlpcore; mlpcore.dataset, mlpcore.Trainer, mlpcore.Evaluation;"
        "assert not [name for name in sys.modules if name.startswith('mlpcore.report')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
