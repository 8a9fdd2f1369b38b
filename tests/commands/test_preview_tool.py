"""tools/preview.py: the images that a training sees, in a picture that can be read."""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from mlpcore import InputError, backends, dataset
from mlpcore.commands import options as command_line
from mlpcore.data import mnist
from mlpcore.deformation.deform import DeformationParameters, displacements
from mlpcore.report import preview as preview_module
from mlpcore.report.preview import draw, make_preview
from mlpcore.training.trainer import Trainer
from small_runs import Hook, isolate, load_tool, make_config, make_dataset, write_idx

tool = load_tool("preview")

PARAMETERS = DeformationParameters(5.0, 30.0, 12.0, 18.0, similar_labels=(1,))


@pytest.fixture(autouse=True)
def isolated(tmp_path, monkeypatch):
    """An empty working folder, no data set of this machine, no network."""
    isolate(monkeypatch, tmp_path / "work")
    monkeypatch.setenv("MLPCORE_BACKEND", "scalar")
    monkeypatch.setattr(mnist, "download", lambda *args: "there is no network")


@pytest.fixture
def data(tmp_path):
    """A folder of small IDX files."""
    return str(write_idx(tmp_path / "letters"))


# What is shown


def test_images_are_those_that_a_training_sees():
    data = make_dataset(n_train=230)  # three grids
    backend = backends.get("scalar", 1)
    config = make_config(epochs=3, seed=7, backend="scalar", deformation=PARAMETERS)
    seen = {}

    def look(trainer, event, *arguments):
        if event == "training":
            seen[trainer.state.epoch] = np.array(trainer._shown)

    trainer = Trainer(config, data, backend, [Hook(look)])
    assert trainer.run()
    sheet = make_preview(data, PARAMETERS, 7, backend, rows=100, columns=4)
    assert np.array_equal(sheet.images[:, 0], data.train_images[sheet.indices])
    for epoch in range(3):
        assert np.array_equal(sheet.images[:, epoch + 1], seen[epoch][sheet.indices])
    later = make_preview(data, PARAMETERS, 7, backend, rows=5, columns=2, first_epoch=3)
    assert np.array_equal(later.images[:, 1], seen[2][later.indices])
    assert list(later.epochs) == [3]


def test_every_class_in_turn():
    data = make_dataset(n_train=30)  # labels 0, 1, 2, 0, ...
    data.train_labels[:] = [2, 2, 2, 0, 2, 1, 1, 2, 2, 0] * 3
    sheet = make_preview(data, PARAMETERS, 0, backends.get("scalar", 1), rows=7, columns=2)
    assert sheet.indices.tolist() == [3, 5, 0, 9, 6, 1, 13]
    assert sheet.labels.tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_displacements_are_those_of_the_images(backend):
    """Looked up along them by the oracle, the originals become the same images.

    Images are in [-1, 1], so bilinear values change by up to 2 a pixel; a position up to 36
    pixels from the centre of float32 is off by some 4e-6 pixels, and so a value by 1e-5; the
    fields of two backends differ by as much again.
    """
    data = make_dataset(n_train=230)
    indices = np.array([229, 0, 57, 100, 199])
    labels = data.train_labels[indices]
    fields = displacements((7, 5), indices, labels, PARAMETERS, 7, 2, backend)
    assert np.abs(fields).max() > 0.3
    identity = np.tile(np.eye(2, dtype=np.float32), (5, 1, 1))
    reference = backends.get("reference")
    found = reference.deform_by(data.train_images[indices], identity, fields)
    whole = preview_module.deform_selected(
        data.train_images, np.arange(230), data.train_labels, PARAMETERS, 7, 2, reference
    )
    assert np.abs(found - whole[indices]).max() < 5e-5


def test_a_preview_out_of_range():
    data, backend = make_dataset(), backends.get("scalar", 1)
    for name, value in (
        ("rows", 0), ("rows", 101), ("columns", 1), ("columns", 101), ("first_epoch", 0),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f" {value}: expected a whole number from"):
            make_preview(data, PARAMETERS, 0, backend, **{name: value})
    for seed in (-1, 2**64):
        with pytest.raises(InputError, match=f"^seed {seed}: expected"):
            make_preview(data, PARAMETERS, seed, backend)


def test_a_sheet_too_large(monkeypatch):
    monkeypatch.setattr(preview_module, "MAX_PIXELS", 8 * 10 * 35 - 1)
    with pytest.raises(InputError, match=r"^10 x 8 images of 7 x 5: expected at most 2,799 pixels"):
        make_preview(make_dataset(), PARAMETERS, 0, backends.get("scalar", 1))


# How it is drawn


class Drawn:
    """A figure as `draw` makes it, looked at before it becomes a file."""

    def __init__(self, monkeypatch, sheet, title="title"):
        from matplotlib.figure import Figure

        savefig = Figure.savefig

        def keep(figure, *arguments, **options):
            self.figure, self.dpi = figure, options["dpi"]
            savefig(figure, *arguments, **options)

        monkeypatch.setattr(Figure, "savefig", keep)
        with Image.open(io.BytesIO(draw(sheet, title))) as image:
            self.pixels = np.asarray(image.convert("L"))
        (self.axes,) = self.figure.axes

    def texts(self):
        """All that is written, with its place in the figure from 0 to 1."""
        self.figure.set_dpi(self.dpi)
        FigureCanvasAgg(self.figure).draw()
        written = [*self.figure.texts, *self.axes.get_xticklabels(), *self.axes.get_yticklabels()]
        invert = self.figure.transFigure.inverted()
        return {
            text.get_text(): text.get_window_extent().transformed(invert)
            for text in written
            if text.get_visible() and text.get_text()
        }


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (10, 8), (3, 30)])
@pytest.mark.parametrize("shape", [(7, 5), (29, 29), (3, 21), (21, 3)])
@pytest.mark.parametrize("field", [False, True])
def test_all_text_is_inside_and_apart(monkeypatch, rows, columns, shape, field):
    images = np.full((rows, columns, *shape), -1, np.float32)
    fields = np.ones((rows, columns - 1, 2, *shape), np.float32) if field else None
    indices, labels = np.arange(59_000, 59_000 + rows), np.full(rows, 9, np.uint8)
    epochs = range(999_000, 999_000 + columns - 1)
    images[:, :, 0] = 1
    sheet = preview_module.Preview(indices, labels, epochs, images, fields)
    drawn = Drawn(monkeypatch, sheet, f"letters: {'sigma 5.2345, ' * 8} seed {2**64 - 1}")
    boxes = list(drawn.texts().values())
    assert len(boxes) == 1 + rows + columns  # the lines above, classes, epochs
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= 1 and box.y0 >= 0 and box.y1 <= 1
    overlaps = [a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert not any(overlaps)
    assert drawn.pixels.max() == 255
    assert drawn.pixels.min() < 50


def test_labels_say_what_is_beside_them(monkeypatch):
    data = make_dataset()
    sheet = make_preview(data, PARAMETERS, 0, backends.get("scalar", 1), 4, 3, first_epoch=9)
    drawn = Drawn(monkeypatch, sheet)
    texts = list(drawn.texts())
    assert texts[1:4] == ["original", "epoch\n9", "epoch\n10"]
    expected = [f"label {k % 3}\nimage {k}" for k in range(4)]
    assert texts[4:] == expected


def test_images_are_drawn_where_they_belong(monkeypatch):
    data = make_dataset()
    sheet = make_preview(data, PARAMETERS, 0, backends.get("scalar", 1), 3, 4)
    drawn = Drawn(monkeypatch, sheet)
    (image,) = drawn.axes.get_images()
    values = image.get_array()
    rows = [round(tick - 3) for tick in drawn.axes.get_yticks()]  # centres of 7 rows, 5 columns
    columns = [round(tick - 2) for tick in drawn.axes.get_xticks()]
    for i, top in enumerate(rows):
        for j, left in enumerate(columns):
            assert np.array_equal(values[top : top + 7, left : left + 5], sheet.images[i, j])
    assert values.mask.sum() == values.size - 12 * 35
    # Ink is dark on light paper, and no value is cut off.
    assert image.get_cmap()(0.0)[0] > image.get_cmap()(1.0)[0]
    assert image.get_clim() == (-1, 1)


def test_arrows_end_where_they_were_looked_up(monkeypatch):
    data = make_dataset()
    sheet = make_preview(data, PARAMETERS, 0, backends.get("scalar", 1), 3, 4, field=True)
    drawn = Drawn(monkeypatch, sheet)
    arrows = next(each for each in drawn.axes.collections if hasattr(each, "U"))
    tails, moved = arrows.XY, np.stack([arrows.U, arrows.V], axis=1)
    heads = tails + moved
    assert np.allclose(heads, np.rint(heads), atol=1e-4)  # pixels
    rows = [round(tick - 3) for tick in drawn.axes.get_yticks()]
    columns = [round(tick - 2) for tick in drawn.axes.get_xticks()][1:]
    drawn_at = 0
    for i, top in enumerate(rows):
        for j, left in enumerate(columns):
            for (x, y), (dx, dy) in zip(np.rint(heads).astype(int), -moved):
                if left <= x < left + 5 and top <= y < top + 7:
                    field = sheet.displacements[i, j, :, y - top, x - left]
                    assert np.allclose(field, (dx, dy), atol=1e-4)
                    drawn_at += 1
    assert drawn_at == len(heads) > 100


def test_a_large_sheet_has_a_bounded_picture(monkeypatch):
    monkeypatch.setattr(preview_module, "MAX_PICTURE_SIDE", 900)
    sheet = make_preview(make_dataset(), PARAMETERS, 0, backends.get("scalar", 1), 40, 3)
    assert max(Drawn(monkeypatch, sheet).pixels.shape) <= 900


# The tool


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments; nothing is written."""
    capsys.readouterr()
    before = sorted(os.listdir())
    assert tool.main([str(argument) for argument in argv]) == 2
    assert sorted(os.listdir()) == before
    out, err = capsys.readouterr()
    assert re.fullmatch(r"error: [^\n]+\n", err)
    assert out == ""
    return err


def test_a_preview(data, capsys):
    assert tool.main(["--data", data, "--seed", "3", "--sigma", "5.5"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "letters: sigma 5.5, alpha 36, beta 15, gamma 15, seed 3",
        "preview: preview.png",
    ]
    with Image.open("preview.png") as image:
        image.load()
        assert image.format == "PNG"
    assert os.listdir() == ["preview.png"]


def test_the_embedded_digits_in_a_file_of_any_name(capsys):
    argv = ["--dataset", "digits", "--rows", "2", "--columns", "2", "--field", "--out", "a b.PNG"]
    assert tool.main(argv) == 0
    assert "beta 15 (1 and 7: 7.5), gamma" in capsys.readouterr().out
    assert os.listdir() == ["a b.PNG"]


def test_options_reach_the_preview(data, monkeypatch):
    made = {}

    def keep(data, parameters, seed, backend, **options):
        made.update(options, parameters=parameters, seed=seed, backend=backend.name)
        return make_preview(data, parameters, seed, backend, **options)

    monkeypatch.setattr(tool, "make_preview", keep)
    argv = "--alpha 0 --sigma 2 --beta 3 --gamma 4 --seed 5 --epoch 6 --rows 2 --columns 3 --field"
    assert tool.main(["--data", data, "--backend", "reference", *argv.split()]) == 0
    assert made == {
        "parameters": DeformationParameters(2, 0, 3, 4, similar_labels=()), "seed": 5,
        "backend": "reference", "rows": 2, "columns": 3, "first_epoch": 6, "field": True,
    }  # fmt: skip


def test_options_are_those_of_training():
    parsed = []
    for each in ("preview", "train"):
        parser = command_line.Parser()
        command_line.add_deformation_options(parser)
        command_line.add_seed_option(parser)
        options = vars(load_tool(each).parse(["--sigma", "1.5", "--gamma", "3", "--seed", "4"]))
        shared = vars(parser.parse_args([]))
        parsed.append({name: options.get(name) for name in shared})
        assert command_line.given_deformation(options) == {"sigma": 1.5, "gamma": 3.0}
    assert parsed[0] == parsed[1]


def test_bad_input(data, capsys):
    for argv, message in (
        (("--sigma", "-1"), "sigma -1.0: expected a finite number, 0 or more"),
        (("--beta", "90"), "beta 90.0: expected"),
        (("--alpha", "nan"), "alpha nan: expected"),
        (("--gamma", "x"), "'x', expected a number"),
        (("--rows", "0"), "rows 0: expected a whole number from 1 to 100"),
        (("--columns", "1"), "columns 1: expected a whole number from 2"),
        (("--rows", "2.5"), "'2.5', expected a whole number"),
        (("--seed", "-1"), "seed -1: expected"),
        (("--epoch", "0"), "epoch 0: expected"),
        (("--out", "a.jpg"), "--out a.jpg: expected a name that ends in .png"),
        (("--out", "missing/a.png"), "cannot write missing/a.png"),
        (("--backend", "none"), "backend 'none': expected"),
        (("--field", "x"), "unrecognized arguments: x"),
    ):
        assert message in refusal(capsys, "--data", data, *argv)
    assert "missing" in refusal(capsys, "--data", "missing")


def test_what_the_data_set_has_to_say(capsys):
    assert tool.main(["--rows", "1", "--columns", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("note: MNIST was not found")
    assert dataset.EMBEDDED in out
    assert Path("preview.png").exists()
