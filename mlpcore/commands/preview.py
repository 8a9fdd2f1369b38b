"""`mlpcore preview`: training images, and what the epochs show of them."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlpcore import backends, philox
from mlpcore.checks import check_whole
from mlpcore.commands.options import (
    DEFORMATION,
    add_backend_options,
    add_data_options,
    command_main,
    command_parser,
    given_deformation,
)
from mlpcore.data import dataset
from mlpcore.deformation.deform import displacements
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError, printable, shown
from mlpcore.files import atomic_write, check_replaceable
from mlpcore.report.preview import draw
from mlpcore.terminal import say
from mlpcore.training.config import MAX_EPOCHS, TrainingConfig
from mlpcore.training.sources import ArraySource
from mlpcore.typing import AnyArray

#: Rows or columns.
MAX_SIDE = 100

ARROWS = "Arrows lead from a point of the original image to its new place."

TEXT = """\
Draws training images and the deformed versions that training uses. The same
seed and deformation give the same images as in `mlpcore train`."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = command_parser("preview", "[options]", TEXT, "--sigma 5 --alpha 38 --field")
    add, add_whole = parser.add_argument, parser.add_whole
    for name, meaning in DEFORMATION.items():
        parser.add_number(f"--{name}", meaning)
    add_whole("--seed", "seed of all random numbers (0)", default=0)
    add_whole("--epoch", "the first epoch that is shown (1)", default=1)
    add_whole("--rows", "number of images (10)", default=10)
    add_whole("--columns", "the original and N-1 epochs (8)", default=8)
    add("--field", action="store_true", help="draw the displacements as arrows")
    add_data_options(parser)
    add_backend_options(parser)
    add("--out", type=Path, default="preview.png", metavar="FILE", help="PNG file (preview.png)")
    return parser.parse_args(argv)


def every_class_in_turn(labels: AnyArray, n: int) -> AnyArray:
    """Indices (n,): the first image of every class, then the second of every class, and so on."""
    order = np.argsort(labels, kind="stable")
    occurrence = np.arange(len(labels)) - np.searchsorted(labels[order], labels[order])
    return order[np.argsort(occurrence, kind="stable")[:n]]


def preview(options: argparse.Namespace) -> int:
    """Draws the contact sheet; returns the exit status."""
    given, seed = given_deformation(vars(options)), options.seed
    DeformationParameters(**given)  # refuses bad values before data are loaded
    check_whole("seed", seed, 0, 2**64 - 1)
    check_whole("rows", options.rows, 1, MAX_SIDE)
    check_whole("columns", options.columns, 2, MAX_SIDE)
    check_whole("epoch", options.epoch, 1, MAX_EPOCHS)
    if options.out.suffix.lower() != ".png":
        raise InputError(f"--out {shown(options.out)}: expected a name that ends in .png")
    check_replaceable(options.out)
    backend = backends.get(options.backend or "auto", options.threads)
    data = dataset.load(options.data, name=options.dataset)
    settings = DeformationParameters(**given, similar_labels=data.similar_labels)
    indices = every_class_in_turn(data.train_labels, options.rows)
    labels = data.train_labels[indices]
    images = data.pixels.to_images(data.train_pixels[indices])
    source = ArraySource.of(data, TrainingConfig(deformation=settings, seed=seed), backend)
    source.room = 1  # images one by one
    epochs, deformed, fields = range(options.epoch, options.epoch + options.columns - 1), [], []
    for epoch in range(options.epoch - 1, epochs[-1]):  # as random numbers count them, from 0
        places = np.argsort(philox.permutation(source.n_samples, seed, epoch))[indices]
        source.begin(epoch)
        inputs = [np.array(source.segment(epoch, at, at + 1).inputs) for at in places.tolist()]
        deformed.append(np.reshape(inputs, images.shape))
        if options.field:
            drawn = places, labels, settings, seed, epoch, backend
            fields.append(displacements(data.image_shape, *drawn))
    similar = ""
    if data.similar_labels and settings.beta:
        names = " and ".join(str(data.classes[k]) for k in data.similar_labels)
        similar = f" ({names}: {settings.beta / 2:g})"
    title = printable(
        f"{data.name}: sigma {settings.sigma:g}, alpha {settings.alpha:g}, "
        f"beta {settings.beta:g}{similar}, gamma {settings.gamma:g}, seed {seed}"
    )
    rows = [(printable(str(data.classes[k]), 20), index) for k, index in zip(labels, indices)]
    content = draw(
        np.stack([images, *deformed], axis=1),
        [f"label {label}\nimage {index}" for label, index in rows],
        ["original", *(f"epoch\n{epoch}" for epoch in epochs)],
        f"{title}\n{ARROWS}" if fields else title,
        np.stack(fields, axis=1) if fields else None,
    )
    atomic_write(options.out, content)
    if data.notice:
        say(f"note: {data.notice}")
    say(title)
    say(f"preview: {shown(options.out)}")
    return 0


main = command_main(parse, preview, "fewer rows or columns")
