"""`mlpcore preview`: the images that a training sees, in a picture that can be read."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from matplotlib.figure import Figure

from mlpcore import DeformationParameters, backends, dataset, philox
from mlpcore.commands import preview
from mlpcore.report.preview import draw
from mlpcore.training.sources import ArraySource
from small_runs import make_config


@pytest.fixture
def savefig():
    """The calls that save a figure."""
    with mock.patch.object(Figure, "savefig", autospec=True, side_effect=Figure.savefig) as savefig:
        yield savefig


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


def test_by_default_what_there_is_with_arrows_if_wanted(call, savefig):
    out = call("preview", "--rows", "2", "--columns", "2", "--field")
    assert out.startswith("note: MNIST was not found")
    assert "beta 15 (1 and 7: 7.5), gamma" in out
    assert preview.ARROWS in savefig.call_args.args[0].axes[0].get_title(loc="left")
    assert Path("preview.png").read_bytes().startswith(b"\x89PNG")


def test_arrows_lead_to_where_they_were_looked_up(savefig):
    """The sheet keeps its size, though some begin at its very edge."""
    shape = 3, 21
    fields = np.random.default_rng(0).uniform(-2, 2, (2, 3, 2, *shape)).astype(np.float32)
    draw(np.zeros((2, 4, *shape), np.float32), ["a", "b"], ["o", "1", "2", "3"], "", fields)
    (axes,) = savefig.call_args.args[0].axes
    assert axes.get_xlim() == tuple(axes.images[0].get_extent()[:2])
    (arrows,) = (each for each in axes.collections if hasattr(each, "U"))
    moved = np.stack([arrows.U, arrows.V], axis=1)
    heads = arrows.XY + moved
    assert np.allclose(heads, np.rint(heads), atol=1e-4) and len(heads) > 20  # pixels
    (height, width), lefts, tops = shape, axes.get_xticks(), axes.get_yticks()
    for (x, y), tail, vector in zip(np.rint(heads), arrows.XY, moved):
        row = np.abs(tops - y).argmin()
        column = np.abs(lefts - x).argmin()
        corner = np.array([lefts[column] - (width - 1) / 2, tops[row] - (height - 1) / 2])
        u, v = np.rint((x, y) - corner).astype(int)
        assert np.allclose(fields[row, column - 1, :, v, u], -vector, atol=1e-4)
        assert (tail >= corner).all() and (tail - corner < (width, height)).all()
