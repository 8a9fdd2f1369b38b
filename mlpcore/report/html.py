"""What notebooks show of data, an evaluation and a training.

Styles are inline, because notebooks remove style sheets. Text has the colour of the page, and
shades are transparent, so that all is legible on light and on dark pages; pictures bring their own
white.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from mlpcore.data.dataset import Dataset
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.report.curves import learning_curves
from mlpcore.report.figures import MAX_NUMBERED, confusion
from mlpcore.report.page import png, title_of
from mlpcore.report.results import describe_error, describe_second
from mlpcore.report.tables import Rows
from mlpcore.training.trainer import Trainer
from mlpcore.typing import AnyArray

if TYPE_CHECKING:
    pass

#: Classes of a contact sheet, and images of each.
MAX_CLASSES, EXAMPLES = 20, 12

#: Pixels on the screen of the longer side of an image, and the most that are sent.
SIDE, MAX_SIDE = 40, 80

#: Pixels an inch of a figure.
DPI = 150

CELL = "padding: 1px 8px; text-align: right; background: none"


@functools.singledispatch
def to_html(shown: object) -> str:
    """The HTML that a notebook shows of a `Dataset`, an `Evaluation` or a `Trainer`."""
    raise NotImplementedError(type(shown).__name__)


@to_html.register
def _(data: Dataset) -> str:
    """A contact sheet: the first training images of each class."""
    classes, counts = np.unique(data.train_labels, return_counts=True)
    text = f"{data.contents}, {data.n_classes} classes"
    rows = []
    for label, count in list(zip(classes.tolist(), counts.tolist()))[:MAX_CLASSES]:
        first = np.flatnonzero(data.train_labels == label)[:EXAMPLES]
        name = escape(str(data.classes[label]))
        strip = _strip(data.train_images[first], f"{len(first)} images of {name}")
        rows.append((f"<b>{name}</b>", strip, f"{count:,}"))
    more = [f"and {len(classes) - len(rows)} more classes"] * (len(classes) > len(rows))
    header = "label", '<div style="text-align: left">first images</div>', "number"
    return _block(data.name, [text], _table([header, *rows]), more)


@to_html.register
def _(evaluation: Evaluation) -> str:
    """The error with its interval, and the confusion matrix."""
    if evaluation.n_classes > MAX_NUMBERED:
        body = _picture(png(confusion(evaluation), dpi=DPI), "confusion matrix")
    else:
        body = _confusion_table(evaluation)
    lines = [
        f"{describe_error(evaluation)}.",
        f"{describe_second(evaluation)} Rows: label. Columns: first guess.",
    ]
    return _block("Misclassified", lines, body)


@to_html.register
def _(trainer: Trainer) -> str:
    """How far the training is, and its learning curves so far."""
    state, config, data = trainer.state, trainer.config, trainer.dataset
    lines = [
        f"{state.epoch} of {config.epochs} epochs of {trainer.n_samples:,} images; "
        f"{trainer.backend.description}"
    ]
    body = ""
    if state.history:
        curves = learning_curves(state.history, data.held_out)
        body = _picture(png(curves, dpi=DPI), "learning curves")
    return _block(title_of(state.network, data.name), lines, body)


def _block(title: str, lines: Iterable[str], body: str, more: Iterable[str] = ()) -> str:
    """A title and lines, which may hold any characters, above a body in HTML."""
    above, below = (
        "".join(f"<div>{escape(line)}</div>" for line in some) for some in (lines, more)
    )
    return f'<div style="overflow-x: auto"><b>{escape(title)}</b>{above}{body}{below}</div>'


def _table(rows: Iterable[Iterable[str]]) -> str:
    """A table whose cells are HTML."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<table style="margin: 6px 0; border-collapse: collapse">{body}</table>'


def _cell(content: str, background: str = "none") -> str:
    style = CELL.replace("none", background)
    return f'<td style="{style}">{content}</td>'


def text_table_html(rows: Rows) -> str:
    """Rows of text, the header first, as a table."""
    header, *others = ([escape(cell) for cell in row] for row in rows)
    return _table([[f"<b>{cell}</b>" for cell in header], *others])


def _confusion_table(evaluation: Evaluation) -> str:
    """The confusion matrix; shades of blue show the number of errors."""
    matrix, n = evaluation.confusion.tolist(), evaluation.n_classes
    errors = np.where(np.eye(n, dtype=bool), 0, evaluation.confusion)
    most = max(1, int(errors.max()))
    rows = ["".join(_cell(f"<b>{text}</b>") for text in ("", *range(n), "errors"))]
    for i, row in enumerate(matrix):
        cells = [_cell(f"<b>{i}</b>")]
        for j, count in enumerate(row):
            share = 0.1 + 0.45 * errors[i, j] / most
            shade = f"rgba(0, 114, 178, {share:.2f})" if errors[i, j] else "none"
            if i == j:
                shade = "rgba(128, 128, 128, 0.25)"
            cells.append(_cell(f"{count:,}" if count else "", shade))
        wrong = sum(row) - row[i]
        rows.append("".join([*cells, _cell(f"{wrong:,} of {sum(row):,}")]))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table style="margin: 6px 0; border-collapse: collapse">{body}</table>'


def _strip(images: AnyArray, words: str) -> str:
    """Images (n, h, w) in [-1, 1] beside each other, dark on white."""
    height, width = images.shape[1:]
    step = -(-max(height, width) // MAX_SIDE)  # every so many pixels of large images
    ink = np.uint8(np.rint(127.5 * (1 - np.clip(images[:, ::step, ::step], -1, 1))))
    gap = max(1, max(ink.shape[1:]) // 10)
    framed = np.pad(ink, ((0, 0), (0, 0), (0, gap)), constant_values=255)
    picture = io.BytesIO()
    Image.fromarray(np.concatenate(list(framed), axis=1)).save(picture, "PNG")
    shown_height = max(1, round(SIDE * height / max(height, width)))
    return _picture(picture.getvalue(), words, f"height: {shown_height}px")


def _picture(content: bytes, words: str, size: str = "width: 700px; max-width: 100%") -> str:
    """A PNG file as an image."""
    encoded = base64.b64encode(content).decode()
    style = f"{size}; background: white; border-radius: 3px"
    return f'<img alt="{words}" style="{style}" src="data:image/png;base64,{encoded}">'
