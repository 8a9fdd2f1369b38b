"""`tools/speedup.py --medians ... --figure`: a dot for each library, and nothing unreadable."""

import itertools
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread
from test_speedup_medians import report

from mlpcore.errors import InputError
from speed import chart
from speed.command import main

TIMES = {("PyTorch by hand", 1): 5.1, ("PyTorch autograd", 2): 9.0}


def with_peers(**changes):
    """A run with three peers, two of which take almost the same time."""
    found = report(TIMES, **changes)
    (network,) = found.architectures
    (row,) = network.routines
    results = tuple(replace(r, peer="a" in r.name and " " in r.name) for r in row.results)
    return replace(
        found, architectures=(replace(network, routines=(replace(row, results=results),)),)
    )


def test_a_dot_for_each_library():
    figure = chart.chart([with_peers()], "step")
    (axes,) = figure.axes
    dots = {
        (float(line.get_xdata()[0]), line.get_color(), to_hex(line.get_markerfacecolor()))
        for line in axes.lines
        if line.get_marker() == "o"
    }
    blue, red, green = (chart.COLOURS[name] for name in ("mlpcore", "PyTorch", "JAX"))
    assert dots == {
        (2.0, blue, blue.lower()),
        (5.0, green, green.lower()),
        (5.1, red, red.lower()),
        (9.0, red, "#ffffff"),
    }
    assert axes.get_xscale() == "log"


def test_no_text_covers_another():
    figure = chart.chart([with_peers()], "step")
    (axes,) = figure.axes
    figure.draw_without_rendering()
    written = [*axes.texts, *figure.texts]
    words = [text.get_text() for text in written]
    assert set(words) >= {"mlpcore", "JAX\nscan", "PyTorch\nby hand", "PyTorch\nautograd", "2.00 s"}
    boxes = [text.get_window_extent() for text in written]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)
    assert all(box.y0 >= 0 and box.y1 <= figure.bbox.height for box in boxes)


def test_the_file(tmp_path, capsys):
    run, path = tmp_path / "run.json", tmp_path / "speed.png"
    with_peers().write(run)
    assert main(["--medians", str(run), "--routine", "step", "--figure", str(path)]) == 0
    assert imread(path).shape[1] == chart.WIDTH * chart.DPI


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--medians", "RUN"], "expected one --routine, not 0"),
        (["--medians", "RUN", "--routine", "step,deform"], "routine"),
        ([], "--figure: expected together with --medians"),
    ],
)
def test_refusals(tmp_path, capsys, options, words):
    run, path = tmp_path / "run.json", tmp_path / "speed.png"
    with_peers().write(run)
    options = [str(run) if each == "RUN" else each for each in options]
    assert main([*options, "--figure", str(path)]) == 2
    assert words in capsys.readouterr().err and not path.exists()


def test_a_routine_that_was_not_timed():
    with pytest.raises(InputError, match="'backward'"):
        chart.chart([with_peers()], "backward")
