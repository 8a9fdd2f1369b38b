"""Width normalisation in ONNX operators: the formula of `mlpcore.data.width` in float32."""

from __future__ import annotations

import math

import numpy as np

from mlpcore.data.width import MAX_STRETCH, THRESHOLD
from mlpcore.store.onnx_graph import Graph


def add_width(graph: Graph, images: str, image_shape: tuple[int, int], width: int) -> str:
    """Append the normalisation of images (n, h, w), whose background is 0; return its result.

    What is darker becomes background.

    Weights are not rounded to whole multiples, and sums are not exact. Measured inputs differ from
    those of `mlpcore.data.width.normalise_width` by 5e-6 at most. They differ more where the box
    depends on a rounding: where the greatest ink of a column is the threshold, to the last bit, and
    that of both columns beside it is less.
    """
    height, columns = image_shape
    images = graph.add("Relu", images)
    down = graph.add("ReduceMax", images, axes=[2], keepdims=0)
    across = graph.add("ReduceMax", images, axes=[1], keepdims=0)
    most = graph.add("ReduceMax", across, axes=[1], keepdims=1)
    least = graph.add("Mul", most, graph.constant("threshold", THRESHOLD))
    top, bottom = _box(graph, down, least, height)
    left, right = _box(graph, across, least, columns)
    # The box of any ink is wider than a pixel.
    box = graph.add("Max", graph.add("Sub", right, left), graph.constant("one", 1))
    stretch = graph.add("Div", graph.constant("width", width), box)
    stretch = graph.add("Min", stretch, graph.constant("max_stretch", MAX_STRETCH))
    axis_1, axis_2 = (graph.constant(f"axis.{axis}", [axis], np.int64) for axis in (1, 2))
    mass = graph.add("ReduceSum", images, axis_2, keepdims=0)
    rows = _means(graph, mass, (top, bottom), graph.constant("none", [[1]]), height, 1)
    mass = graph.add("ReduceSum", images, axis_1, keepdims=0)
    beyond = math.ceil(2 * max(1, (columns + 0.5) / width)) - 1
    weights = _means(graph, mass, (left, right), stretch, columns, beyond)
    images = graph.add("MatMul", rows, images)
    return graph.add("MatMul", images, graph.add("Transpose", weights, perm=[0, 2, 1]))


def _box(graph: Graph, profile: str, least: str, side: int) -> tuple[str, str]:
    """Where profiles (n, side) first and last cross a value (n, 1), each (n, 1)."""
    pads = graph.constant("pads", [0, 1, 0, 1], np.int64)
    padded = graph.add("Pad", profile, pads)
    pixels = graph.constant(f"pixels.{side}", np.arange(side))
    above = graph.add("Sub", profile, least)
    inside = graph.add("Greater", profile, least)
    ends = []
    for begin, operator, reduction, far in (
        (0, "Sub", "ReduceMin", side),
        (2, "Add", "ReduceMax", -1),
    ):
        beside = _slice(graph, padded, begin, begin + side, 1)
        outside = graph.add("Not", graph.add("Greater", beside, least))
        # Of what follows, only the values at a crossing are taken; they have no 0 below them.
        share = graph.add("Div", above, graph.add("Sub", profile, beside))
        crossing = graph.add(operator, pixels, share)
        at = graph.add("And", inside, outside)
        crossing = graph.add("Where", at, crossing, graph.constant(f"far.{far}", far))
        ends.append(graph.add(reduction, crossing, axes=[1], keepdims=1))
    return ends[0], ends[1]


def _means(
    graph: Graph, mass: str, box: tuple[str, str], stretch: str, side: int, beyond: int
) -> str:
    """Weights (n, side, side) of the sources for each result: `_tents` and the division by sums.

    `mass` has shape (n, side), the ends of the box and `stretch` have (n, 1).
    """
    centre, margin = (side - 1) / 2, THRESHOLD - 1
    constant = graph.constant
    # Positions count from the centre, so that sums are small, and rounded little.
    pixels = constant(f"offsets.{side}", np.arange(side) - centre)
    axis = constant("axis.1", [1], np.int64)
    total = graph.add("ReduceSum", mass, axis, keepdims=1)
    total = graph.add("Max", total, constant("tiny", 1e-6))
    middle = graph.add("ReduceSum", graph.add("Mul", mass, pixels), axis, keepdims=1)
    middle = graph.add("Div", middle, total)
    ends = []
    for end in box:
        offset = graph.add("Sub", end, constant(f"centre.{side}", centre))
        ends.append(graph.add("Mul", stretch, graph.add("Sub", offset, middle)))
    low, high = constant(f"low.{side}", margin - centre), constant(f"high.{side}", centre - margin)
    zero = constant("zero", 0)
    target = graph.add("Max", graph.add("Sub", low, ends[0]), zero)
    too_far = graph.add("Sub", graph.add("Add", target, ends[1]), high)
    target = graph.add("Sub", target, graph.add("Max", too_far, zero))
    source = graph.add("Add", middle, graph.add("Div", graph.add("Sub", pixels, target), stretch))
    last = constant("axis.2", [2], np.int64)
    slope = graph.add("Unsqueeze", graph.add("Min", stretch, constant("one", 1)), last)
    sources = np.arange(-beyond, side + beyond) - centre
    distance = graph.add(
        "Sub",
        constant(f"sources.{side}.{beyond}", sources),
        graph.add("Unsqueeze", source, last),
    )
    distance = graph.add("Mul", graph.add("Abs", distance), slope)
    weights = graph.add("Max", graph.add("Sub", constant("one", 1), distance), zero)
    total = graph.add("ReduceSum", weights, last, keepdims=1)
    total = graph.add("Max", total, constant("tiny", 1e-6))
    weights = _slice(graph, weights, beyond, beyond + side, 2)
    return graph.add("Div", weights, total)


def _slice(graph: Graph, values: str, begin: int, end: int, axis: int) -> str:
    """The part of an axis from `begin` to before `end`."""
    bounds = (graph.constant(f"index.{i}", [i], np.int64) for i in (begin, end, axis))
    return graph.add("Slice", values, *bounds)
