"""Make the network of the package that tells digits from other pictures.

It learns from MNIST's training digits, a share of the ones and sevens with the strokes of
`mlpcore.data.strokes`, and from pictures of none: noise, textures, letters of Matplotlib's fonts,
text, tables, windows, scribbles. The last 10,000 training digits are held out, and choose the
threshold.
"""

from __future__ import annotations

import contextlib
import string
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from msgspec import structs
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from mlpcore import Dataset, Trainer, TrainingConfig, backends, dataset
from mlpcore.commands.options import Parser, run_tool
from mlpcore.data.dataset import MNIST
from mlpcore.data.digit import find_digit
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.data.strokes import add_strokes
from mlpcore.errors import InputError
from mlpcore.evaluation.evaluation import outputs
from mlpcore.inference.rejector import REJECTOR_FILE, doubtful
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import in_float16, write_network
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES
from mlpcore.typing import Float32Array, Float64Array

#: How many digits are held out, and the share of them that may be in doubt.
N_HELD_OUT, FALSE_ALARMS = 10_000, 0.001

#: Pictures of each kind, to learn from and to try it on.
N_OF_A_KIND, N_MEASURED = 2500, 500

#: Digits of which there are rough pictures, too.
N_ROUGH = 16_000

#: Characters that look like no digit, not even like a 1 or a 7 with a bar.
CHARACTERS = "ACEHKLMNPRVWXacdehkmnpruvwx&?@%#*+="

#: Share of ones and sevens that get further strokes.
SHARE_OF_STROKES = 0.3

#: Hidden neurons, and passes over the pictures.
HIDDEN, EPOCHS = (96,), 20

SIDE = 96


def noise(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """Grey levels or two values, each pixel for itself or in blots."""
    side = rng.integers(12, SIDE, 2)
    grey = rng.normal(0, 1, side)
    if rng.random() < 0.7:
        grey = ndimage.gaussian_filter(grey, rng.uniform(0.5, 8))
    grey /= grey.std()
    if rng.random() < 0.4:
        return np.where(grey > rng.uniform(-1.5, 1.5), 255.0, 0)
    return np.clip(128 + 70 * grey, 0, 255)


def characters(rng: np.random.Generator, lines: Sequence[str], size: int) -> Image.Image:
    """Lines of characters in one of Matplotlib's fonts."""
    import matplotlib

    fonts = sorted(Path(matplotlib.get_data_path(), "fonts", "ttf").glob("DejaVuS*[!y].ttf"))
    font = ImageFont.truetype(fonts[rng.integers(len(fonts))], size)
    image = Image.new("L", (3 * SIDE, 3 * SIDE), 255)
    ImageDraw.Draw(image).multiline_text((SIDE, SIDE), "\n".join(lines), 0, font)
    box = ImageDraw.Draw(image).multiline_textbbox((SIDE, SIDE), "\n".join(lines), font)
    return image.crop((box[0] - 6, box[1] - 6, min(box[2] + 6, 3 * SIDE), box[3] + 6))


def letter(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """One letter, slanted, in thin or thick strokes."""
    image = characters(rng, [rng.choice(list(CHARACTERS))], int(rng.integers(40, SIDE)))
    width, height = image.size
    slant = rng.uniform(-0.4, 0.4)
    mapped = (1, slant, -width / 4 - slant * height / 2, 0, 1, 0)
    image = image.transform((3 * width // 2, height), Image.Transform.AFFINE, mapped, fillcolor=255)
    image = image.resize((int(image.width * rng.uniform(0.7, 1.4)), height))
    grey = np.asarray(image, np.float64)
    return ndimage.grey_erosion(grey, (1 + int(rng.integers(4)),) * 2)


def text(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """Words in lines, of letters and figures."""
    known = list(string.ascii_letters + string.digits + "    ")
    lines = ["".join(rng.choice(known, rng.integers(3, 14))) for _ in range(rng.integers(1, 9))]
    return np.asarray(characters(rng, lines, int(rng.integers(10, 24))), np.float64)


def scribble(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """A line to and fro, of straight or round parts."""
    points = np.cumsum(rng.normal(0, 20, (int(rng.integers(5, 14)), 2)), axis=0)
    if rng.random() < 0.5:
        points = ndimage.zoom(points, (8, 1), order=3)
    points -= points.min(axis=0) - 8
    image = Image.new("L", [int(side) + 9 for side in points.max(axis=0)], 255)
    width = int(rng.integers(2, 9))
    ImageDraw.Draw(image).line([tuple(p) for p in points], 0, width, joint="curve")
    image.thumbnail((2 * SIDE, 2 * SIDE))
    return np.asarray(image, np.float64)


def table(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """Digits in rows and columns, mostly between lines."""
    rows, columns = rng.integers((1, 2), (8, 9))
    height, width = rng.integers(22, 34, 2)
    grey = np.full((rows * height, columns * width), 255.0)
    for y in range(rows):
        for x in range(columns):
            digit = 127.5 * (1 - digits[rng.integers(len(digits))])
            seen = digit[: height - 1, : width - 1]
            grey[y * height :, x * width :][: seen.shape[0], : seen.shape[1]] = seen
    if rng.random() < 0.7:
        for k in range(rng.integers(1, 3)):
            grey[k::height] = grey[:, k::width] = 0
    crop = rng.integers(0, 20, 2)
    return grey[crop[0] :, crop[1] :]


def screen(rng: np.random.Generator, digits: Float32Array) -> Float64Array:
    """A window with a row of buttons, and a digit on a canvas."""
    height, width = rng.integers(60, 130, 2)
    grey = np.full((height, width), rng.uniform(200, 255))
    bar, pitch = int(rng.integers(6, height // 5)), int(rng.integers(4, 14))
    grey[:bar] = rng.uniform(130, 225)
    for x in range(3, int(rng.uniform(0.3, 1) * width) - pitch, pitch):
        grey[2 : bar - 2, x : x + pitch - 1 - rng.integers(2)] = rng.uniform(40, 160)
    top, left = rng.integers(bar + 1, height - 36), rng.integers(1, width - 30)
    grey[top : top + 29, left : left + 29] = 127.5 * (1 - digits[rng.integers(len(digits))])
    return grey


#: What draws pictures of each kind, and the share of the kind, in `N_OF_A_KIND`.
KINDS = {
    "noise": (noise, 2),
    "letters": (letter, 3),
    "text": (text, 1),
    "scribbles": (scribble, 1),
    "tables": (table, 1),
    "windows": (screen, 1),
}


def images_of(
    kind: str, n: int, rng: np.random.Generator, digits: Float32Array
) -> Iterator[Float32Array]:
    """Images of n pictures that show no digit; those that are refused do not count."""
    while n:
        grey = KINDS[kind][0](rng, digits)
        with contextlib.suppress(InputError):
            yield find_digit(255 - grey if rng.random() < 0.3 else grey).image
            n -= 1


def rough(digits: Float32Array, rng: np.random.Generator) -> Iterator[Float32Array]:
    """Images of digits in few pixels, or in two values, thick or thin, cut along the ink."""
    for digit in digits:
        grey = Image.fromarray(np.rint(127.5 * (digit + 1)).astype(np.uint8))
        if rng.random() < 0.5:
            few = grey.resize((int(rng.integers(7, 16)),) * 2, Image.Resampling.BOX)
            picture = few.resize((48, 48), Image.Resampling.BICUBIC)
        else:
            large = np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
            ink = large > rng.integers(40, 220)
            rows, columns = (np.flatnonzero(ink.any(axis=k)) for k in (1, 0))
            if not len(rows):
                continue
            box = Image.fromarray(ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
            sides = [16] * 2 if rng.random() < 0.4 else [max(8, side // 2) for side in box.size]
            picture = box.resize(sides).convert("L")
        with contextlib.suppress(InputError):
            yield find_digit(np.asarray(picture, np.float64)).image


def make(path: Path) -> None:
    """Makes the pictures, trains, and writes the network with its threshold."""
    data = dataset.load(name="mnist")
    rng = np.random.default_rng(0)
    digits = add_strokes(data.train_images, data.train_labels, data.classes, SHARE_OF_STROKES, 0)
    learnt, held_out = digits[:-N_HELD_OUT], digits[-N_HELD_OUT:]
    drawn = [images_of(kind, n * N_OF_A_KIND, rng, learnt) for kind, (_, n) in KINDS.items()]
    others = np.stack(list(chain(*drawn)))
    some = learnt[rng.permutation(len(learnt))[:N_ROUGH]]
    images = np.concatenate([others, learnt, np.stack(list(rough(some, rng)))])
    labels = np.arange(len(images)) >= len(others)
    tested = np.concatenate([others[::20], data.train_images[-N_HELD_OUT:]])
    of_tested = np.arange(len(tested)) >= len(others[::20])
    pictures = Dataset.from_arrays(images, labels.astype(int), tested, of_tested.astype(int))
    settings = RECIPES[DEFAULT_RECIPE].settings_of(HIDDEN)
    config = TrainingConfig(HIDDEN, EPOCHS, **settings)
    backend = backends.get("cpu")
    trainer = Trainer(config, pictures, backend)
    trainer.run()
    trained = TrainedNetwork(
        path,
        in_float16(trainer.state.network),
        structs.replace(MNIST_PIXELS, input_range=config.input_range),
        {"data": MNIST},
        classes=("no digit", "digit"),
    )
    seen = outputs(trained.network, trained.pixels.to_inputs(held_out), backend)[:, 1]
    threshold = round(float(np.quantile(seen, FALSE_ALARMS)), 4)
    metadata = trained.known_metadata() | {"threshold": str(threshold)}
    write_network(path, trained.network, metadata, "float16")
    print(f"{path}: {path.stat().st_size:,} bytes, threshold {threshold}")


def measure() -> None:
    """Prints how many pictures of each kind, and of MNIST's test digits, are in doubt."""
    images = dataset.load(name="mnist").test_images
    rng, backend = np.random.default_rng(1), backends.get("cpu", 1)
    print(f"digits: {100 * np.mean(doubtful(images, backend)):.2f} % in doubt")
    for kind in KINDS:
        found = np.stack(list(images_of(kind, N_MEASURED, rng, images)))
        print(f"{kind}: {100 * np.mean(doubtful(found, backend)):.0f} % in doubt")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--measure", action="store_true", help="only try that of the package")
    parser.add_argument("--out", type=Path, default=REJECTOR_FILE, help="file to write")

    def command() -> int:
        options = parser.parse_args(argv)
        measure() if options.measure else make(options.out)
        return 0

    return run_tool(command)


if __name__ == "__main__":
    sys.exit(main())
