"""`mlpcore preview`: the images that a training sees, in a picture that can be read."""

from pathlib import Path
from unittest import mock

import numpy as np

from mlpcore import DeformationParameters, backends, dataset, philox
from mlpcore.commands import preview
from mlpcore.training.sources import ArraySource
from small_runs import make_config


def test_images_are_those_that_a_training_sees(call, data, monkeypatch):
    """Its epoch numbers are those of people, from 1."""
    options = "--sigma 5 --alpha 4 --beta 12 --gamma 8 --seed 7 --backend scalar"
    argv = [*options.split(), "--rows", "6", "--columns", "3", "--epoch", "2"]
    loaded, draw = dataset.load(data), mock.Mock(return_value=b"drawn")
    monkeypatch.setattr(preview, "draw", draw)
    out = call("preview", "--data", data, *argv, "--out", "a b.PNG")
    assert out == "letters: sigma 5, alpha 4, beta 12, gamma 8, seed 7\npreview: a b.PNG\n"
    assert Path("a b.PNG").read_bytes() == b"drawn"
    images, rows, columns, title, fields = draw.call_args.args
    assert rows == [f"label {k % 3}\nimage {k}" for k in range(6)]
    assert columns == ["original", "epoch\n2", "epoch\n3"]
    assert (title, fields) == (out.split("\n")[0], None)
    config = make_config(seed=7, deformation=DeformationParameters(5, 4, 12, 8, similar_labels=()))
    source = ArraySource.of(loaded, config, backends.get("scalar", 1))
    assert np.array_equal(images[:, 0], loaded.train_images[:6])
    for column, epoch in ((1, 1), (2, 2)):
        source.begin(epoch)
        inputs = source.segment(epoch, 0, 230).inputs.reshape(-1, 7, 5)
        places = np.argsort(philox.permutation(230, 7, epoch))
        assert np.array_equal(images[:, column], inputs[places[:6]])


def test_by_default_what_there_is_with_arrows_if_wanted(call):
    out = call("preview", "--rows", "2", "--columns", "2", "--field")
    assert out.startswith("note: MNIST was not found")
    assert "beta 15 (1 and 7: 7.5), gamma" in out
    assert Path("preview.png").read_bytes().startswith(b"\x89PNG")
