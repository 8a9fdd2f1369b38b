"""Digits as strokes of points in a square of side 1."""

import math


def arc(x, y, rx, ry, begin, end, n=12):
    """Points of an ellipse about (x, y), from one angle to another in degrees; y points down."""
    angles = [math.radians(begin + (end - begin) * k / n) for k in range(n + 1)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


STROKES = {
    0: [arc(0.5, 0.5, 0.2, 0.32, -80, 285)],
    1: [[(0.47, 0.2), (0.49, 0.5), (0.5, 0.8)]],
    2: [[*arc(0.49, 0.36, 0.18, 0.18, 195, 390), (0.5, 0.62), (0.32, 0.8), (0.7, 0.79)]],
    3: [[*arc(0.48, 0.34, 0.17, 0.16, 200, 440), *arc(0.48, 0.65, 0.2, 0.17, -80, 155)]],
    4: [[(0.38, 0.2), (0.31, 0.52), (0.7, 0.5)], [(0.61, 0.26), (0.58, 0.82)]],
    5: [
        [(0.36, 0.2), (0.33, 0.47), *arc(0.47, 0.62, 0.2, 0.19, -130, 140)],
        [(0.36, 0.2), (0.5, 0.19), (0.68, 0.18)],
    ],
    6: [[(0.6, 0.18), (0.42, 0.34), *arc(0.48, 0.65, 0.17, 0.16, 190, 560)]],
    7: [[(0.3, 0.22), (0.5, 0.23), (0.7, 0.2), (0.55, 0.5), (0.45, 0.82)]],
    8: [[*arc(0.5, 0.35, 0.14, 0.14, -60, -270), *arc(0.5, 0.66, 0.17, 0.17, -90, 270),
         *arc(0.5, 0.35, 0.14, 0.14, 90, -60)]],
    9: [[*arc(0.49, 0.36, 0.16, 0.16, -30, -360), (0.65, 0.3), (0.64, 0.5), (0.58, 0.82)]],
}  # fmt: skip


def styled(strokes, size=1.0, slant=0.0, turn=0.0, shift=(0.0, 0.0)):
    """Strokes as another hand writes them: smaller, slanted, turned by degrees, off-centre."""
    cosine, sine = math.cos(math.radians(turn)), math.sin(math.radians(turn))

    def place(x, y):
        x, y = size * (x - 0.5 - slant * (y - 0.5)), size * (y - 0.5)
        return 0.5 + cosine * x - sine * y + shift[0], 0.5 + sine * x + cosine * y + shift[1]

    return [[place(*point) for point in stroke] for stroke in strokes]


def draw(page, strokes, pen=0.07):
    """Draws on the page with the mouse."""
    page.locator("#pen").fill(str(pen))
    box = page.locator("#drawing").bounding_box()
    for stroke in strokes:
        first, *others = [
            (box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke
        ]
        page.mouse.move(*first)
        page.mouse.down()
        for point in others:
            page.mouse.move(*point)
        page.mouse.up()
    wait_for_answer(page)


def wait_for_answer(page):
    """Waits until the page has answered, which it does before it paints the next frame.

    Then it computes the deformed forms.
    """
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    page.wait_for_function("() => document.getElementById('forms').ariaBusy !== 'true'")
