"""Answers, drawn onto the page that was read."""

from PIL import Image, ImageDraw, ImageFont
from scipy.spatial import KDTree

from mlpcore.reading.fields import numbers
from mlpcore.reading.page import Page

SURE, DOUBTFUL, EMPTY, NUMBER = "#0969da", "#cf222e", "#8c959f", "#8250df"

#: The height of the letters, as a share of that of a box: above it, and inside of it.
LETTERS, SMALL = 0.35, 0.22


def draw(page: Page) -> Image.Image:
    """The page with a frame and the answer at each digit, those in doubt in another colour.

    An answer stands above its digit, or small in a corner of a box below another box. Below, at the
    left, a number stands in the first box of each row of boxes without a gap.
    """
    image = Image.fromarray(page.grey).convert("RGB")
    canvas = ImageDraw.Draw(image)
    far = -1e9, -1e9  # a tree must not be empty
    bottoms = KDTree([far, *(each.corners[3] for each in page.digits if page.boxed)])
    for each in page.digits:
        corners = each.corners / page.scale
        height = corners[:, 1].max() - corners[:, 1].min()
        colour = EMPTY if each.answer is None else DOUBTFUL if each.in_doubt else SURE
        canvas.polygon([tuple(corner) for corner in corners], outline=colour, width=2)
        below_a_box = bottoms.query(each.corners[0])[0] < LETTERS * height * page.scale
        font = ImageFont.load_default(max(10, (SMALL if below_a_box else LETTERS) * height))
        place, anchor = ((3, 3), "la") if below_a_box else ((0, -3), "ld")
        canvas.text(tuple(corners[0] + place), each.text, colour, font, anchor)
    if page.boxed:
        for k, (first, *_) in enumerate(numbers(page), 1):
            (_, top), (left, bottom) = first.cell[[0, 3]] / page.scale
            font = ImageFont.load_default(max(10, SMALL * (bottom - top)))
            canvas.text((left + 3, bottom - 3), str(k), NUMBER, font, "ld")
    return image
