"""Make the network of the package that gives a second opinion on digits, and tells other pictures.

It learns MNIST's training digits, some with the strokes of `mlpcore.data.strokes` and some of them
leaning, rough ones, printed digits, and as an eleventh class pictures of none: letters, signs
and words in print and in the pen's strokes of OpenCV's fonts, pairs of digits, noise, textures,
tables, windows, scribbles. The last 10,000 training digits are held out, and choose the threshold.
Half of the fonts are held out for `--measure`.
"""

from __future__ import annotations

import contextlib
import string
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
from msgspec import structs
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from mlpcore import Dataset, Trainer, TrainingConfig, backends, dataset
from mlpcore.commands.options import Parser, run_tool
from mlpcore.data.dataset import MNIST
from mlpcore.data.digit import find_digit
from mlpcore.data.pixels import MNIST_PIXELS
from mlpcore.data.strokes import draw_strokes
from mlpcore.errors import InputError
from mlpcore.evaluation.evaluation import outputs
from mlpcore.inference.rejector import REJECTOR_FILE, doubtful
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import in_float16, write_network
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES
from mlpcore.typing import AnyArray, Float32Array, Float64Array

#: How many digits are held out, and the share of them that may be in doubt.
N_HELD_OUT, FALSE_ALARMS = 10_000, 0.001

#: Pictures of each kind, to learn from and to try it on.
N_OF_A_KIND, N_MEASURED = 1500, 500

#: Digits of which there are rough pictures, too, and the printed ones.
N_ROUGH, N_PRINTED = 12_000, 6000

#: Characters that a pen's digit can be told from: not l, I, O, o and the upright bar.
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz"
SIGNS = "&?@%#*+=$!()<>[]{}~/\\\u00a7\u20ac\u00a3"

#: Shares of ones and sevens that get strokes, one after the other, and of digits that lean, by
#: which change of x with y.
SHARES_OF_STROKES, SHARE_LEANT, LEANT = (0.5, 0.4), 0.4, (-0.15, 0.6)

#: Hidden neurons, and passes over the pictures.
HIDDEN, EPOCHS = (256, 96), 25

SIDE = 96

#: Matplotlib's fonts that are learnt, and held out, by the begin of their names; so are those of a
#: folder by theirs, and OpenCV's.
LEARNT = "DejaVuSans", "STIXGeneral", "cmr", "cmss", "cmb", "Roboto", "SourceSerif", "Amatic"
HELD_OUT = "DejaVuSerif", "cmtt", "cmmi", "cmti", "Lato", "SourceSans", "Caladea", "Intuitive"
STROKES = (0, 4, 7, 1), (2, 3, 6)


class Print:
    """Characters in fonts, those that are learnt or those held out."""

    def __init__(self, folder: Path | None, held_out: bool):
        import matplotlib

        roots = [Path(matplotlib.get_data_path(), "fonts", "ttf"), *([folder] if folder else [])]
        files = sorted(chain.from_iterable(root.rglob("*.[to]tf") for root in roots))
        begins = HELD_OUT if held_out else LEARNT
        self.files = [f for f in files if f.name.startswith(begins) and "Display" not in f.name]
        self.strokes = STROKES[held_out]

    def draw(self, rng: np.random.Generator, text: str, size: int) -> Image.Image:
        """Characters, dark on light."""
        if rng.random() < 0.35 and text.isascii():
            font = int(rng.choice(self.strokes)) | 16 * int(rng.random() < 0.3)  # 16: italic
            scale, thick = size / 30, int(rng.integers(1, max(2, size // 9)))
            (width, height), below = cv2.getTextSize(text, font, scale, thick)
            drawn = np.full((height + below + 40, width + 60), 255, np.uint8)
            cv2.putText(drawn, text, (30, height + 20), font, scale, (0,), thick, cv2.LINE_AA)
            return Image.fromarray(drawn)
        letters = ImageFont.truetype(self.files[rng.integers(len(self.files))], size)
        left, top, right, bottom = letters.getbbox(text)
        image = Image.new("L", (int(right - left) + 30, int(bottom - top) + 30), 255)
        ImageDraw.Draw(image).text((15 - left, 15 - top), text, 0, letters)
        return image

    def varied(self, rng: np.random.Generator, text: str) -> Float64Array:
        """Characters, slanted, wide or narrow, in thin or thick strokes."""
        image = self.draw(rng, text, int(rng.integers(30, SIDE)))
        width, height = image.size
        slant = rng.uniform(-0.3, 0.3)
        mapped = (1, slant, -width / 4 - slant * height / 2, 0, 1, 0)
        size = 3 * width // 2, height
        image = image.transform(size, Image.Transform.AFFINE, mapped, fillcolor=255)
        image = image.resize((max(8, int(image.width * rng.uniform(0.75, 1.3))), height))
        grey = np.asarray(image, np.float64)
        if rng.random() < 0.4:
            grey = ndimage.grey_erosion(grey, (1 + int(rng.integers(4)),) * 2)
        return ndimage.gaussian_filter(grey, rng.uniform(0, 1.5))


def noise(rng: np.random.Generator, digits: Float32Array, _: Print) -> Float64Array:
    """Grey levels or two values, each pixel for itself or in blots."""
    side = rng.integers(12, SIDE, 2)
    grey = rng.normal(0, 1, side)
    if rng.random() < 0.7:
        grey = ndimage.gaussian_filter(grey, rng.uniform(0.5, 8))
    grey /= grey.std()
    if rng.random() < 0.4:
        return np.where(grey > rng.uniform(-1.5, 1.5), 255.0, 0)
    return np.clip(128 + 70 * grey, 0, 255)


def letter(rng: np.random.Generator, digits: Float32Array, print_: Print) -> Float64Array:
    """One letter."""
    return print_.varied(rng, str(rng.choice(list(LETTERS))))


def sign(rng: np.random.Generator, digits: Float32Array, print_: Print) -> Float64Array:
    """One sign."""
    return print_.varied(rng, str(rng.choice(list(SIGNS))))


def word(rng: np.random.Generator, digits: Float32Array, print_: Print) -> Float64Array:
    """A few characters."""
    known = list(LETTERS + string.digits)
    return print_.varied(rng, "".join(rng.choice(known, rng.integers(2, 5))))


def text(rng: np.random.Generator, digits: Float32Array, print_: Print) -> Float64Array:
    """Words in lines, of letters and figures."""
    known, size = list(string.ascii_letters + string.digits + "    "), int(rng.integers(10, 24))
    lines = [
        print_.draw(rng, "".join(rng.choice(known, rng.integers(3, 14))), size)
        for _ in range(rng.integers(1, 9))
    ]
    image = Image.new("L", (max(line.width for line in lines), 2 * size * len(lines) + 20), 255)
    for k, line in enumerate(lines):
        image.paste(line, (0, 2 * size * k))
    return np.asarray(image, np.float64)


def pair(rng: np.random.Generator, digits: Float32Array, _: Print) -> Float64Array:
    """Two digits that touch, or nearly do."""
    one, other = 127.5 * (1 - digits[rng.integers(0, len(digits), 2)])
    one, other = (each[:, (each < 200).any(axis=0)] for each in (one, other))
    shared = int(rng.integers(0, min(4, one.shape[1], other.shape[1])))
    both = np.full((len(one), one.shape[1] + other.shape[1] - shared), 255.0)
    both[:, : one.shape[1]] = one
    both[:, one.shape[1] - shared :] = np.minimum(both[:, one.shape[1] - shared :], other)
    return ndimage.zoom(np.pad(both, 6, constant_values=255), 2, order=1)


def scribble(rng: np.random.Generator, digits: Float32Array, _: Print) -> Float64Array:
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


def table(rng: np.random.Generator, digits: Float32Array, _: Print) -> Float64Array:
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


def screen(rng: np.random.Generator, digits: Float32Array, _: Print) -> Float64Array:
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
    "letters": (letter, 11),
    "signs": (sign, 3),
    "words": (word, 2),
    "text": (text, 1),
    "pairs": (pair, 2),
    "scribbles": (scribble, 1),
    "tables": (table, 1),
    "windows": (screen, 1),
}


def images_of(
    kind: str, n: int, rng: np.random.Generator, digits: Float32Array, print_: Print
) -> Iterator[Float32Array]:
    """Images of n pictures that show no digit; those that are refused do not count."""
    while n:
        grey = KINDS[kind][0](rng, digits, print_)
        with contextlib.suppress(InputError):
            yield find_digit(255 - grey if rng.random() < 0.3 else grey).image
            n -= 1


def printed(n: int, rng: np.random.Generator, print_: Print) -> Iterator[tuple[Float32Array, int]]:
    """Images of printed digits, and which they are."""
    for _ in range(n):
        digit = int(rng.integers(10))
        with contextlib.suppress(InputError):
            yield find_digit(print_.varied(rng, str(digit))).image, digit


def rough(
    digits: Float32Array, labels: AnyArray, rng: np.random.Generator
) -> Iterator[tuple[Float32Array, int]]:
    """Images of digits in few pixels, or in two values, thick or thin, cut along the ink."""
    for digit, label in zip(digits, labels.tolist()):
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
            yield find_digit(np.asarray(picture, np.float64)).image, label


def with_strokes(data: Dataset) -> Float32Array:
    """MNIST's training digits, some of them with strokes, and some leaning."""
    digits, rng = np.array(data.train_images), np.random.default_rng(3)
    for seed, share in enumerate(SHARES_OF_STROKES, 11):
        chosen, drawn = draw_strokes(digits, data.train_labels, data.classes, share, seed)
        digits[chosen] = drawn
    for k in np.flatnonzero(rng.random(len(digits)) < SHARE_LEANT):
        lean = rng.uniform(*LEANT)
        matrix = np.array([[1, -lean, lean * (digits.shape[1] // 2)], [0, 1, 0]])
        digits[k] = cv2.warpAffine(digits[k] + 1, matrix, digits.shape[:0:-1]) - 1
    return digits


def make(path: Path, fonts: Path | None) -> None:
    """Makes the pictures, trains, and writes the network with its threshold."""
    data = dataset.load(name="mnist")
    rng, print_ = np.random.default_rng(0), Print(fonts, held_out=False)
    digits, labels = with_strokes(data), data.train_labels
    learnt, held_out = digits[:-N_HELD_OUT], digits[-N_HELD_OUT:]
    drawn = (
        images_of(kind, n * N_OF_A_KIND, rng, learnt, print_) for kind, (_, n) in KINDS.items()
    )
    others = np.stack(list(chain(*drawn)))
    some = rng.permutation(len(learnt))[:N_ROUGH]
    more = [*rough(learnt[some], labels[some], rng), *printed(N_PRINTED, rng, print_)]
    images = np.concatenate([others, learnt, np.stack([image for image, _ in more])])
    known = labels[:-N_HELD_OUT], [label for _, label in more]
    wanted = np.concatenate([[10] * len(others), *known]).astype(int)
    order = rng.permutation(len(images))
    tested = np.concatenate([others[::20], held_out])
    of_tested = np.concatenate([[10] * len(others[::20]), labels[-N_HELD_OUT:]])
    pictures = Dataset.from_arrays(
        images[order], wanted[order], tested, of_tested, value_range=(-1, 1), similar_labels=(1, 7)
    )
    settings = RECIPES[DEFAULT_RECIPE].settings_of(HIDDEN)
    config = TrainingConfig(HIDDEN, EPOCHS, **settings)
    backend = backends.get("cpu")
    trainer = Trainer(config, pictures, backend)
    trainer.run()
    pixels = structs.replace(MNIST_PIXELS, input_range=config.input_range)
    classes = (*map(str, range(10)), "no digit")
    network = in_float16(trainer.state.network)
    trained = TrainedNetwork(path, network, pixels, {"data": MNIST}, classes=classes)
    seen = outputs(network, pixels.to_inputs(held_out), backend)
    threshold = round(float(np.quantile(1 - seen[:, -1], FALSE_ALARMS)), 4)
    metadata = trained.known_metadata() | {"threshold": str(threshold)}
    write_network(path, network, metadata, "float16")
    right = np.mean(seen[:, :-1].argmax(axis=1) == labels[-N_HELD_OUT:])
    print(
        f"{path}: {path.stat().st_size:,} bytes, threshold {threshold}, {100 * right:.2f} % right"
    )


def measure(fonts: Path | None) -> None:
    """Prints how many pictures of each kind, and of MNIST's test digits, are in doubt."""
    images = dataset.load(name="mnist").test_images
    rng, backend, print_ = np.random.default_rng(1), backends.get("cpu", 1), Print(fonts, True)
    print(f"digits: {100 * np.mean(doubtful(images, backend)):.2f} % in doubt")
    for kind in KINDS:
        found = np.stack(list(images_of(kind, N_MEASURED, rng, images, print_)))
        print(f"{kind}: {100 * np.mean(doubtful(found, backend)):.0f} % in doubt")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--measure", action="store_true", help="only try that of the package")
    parser.add_argument("--fonts", type=Path, help="a folder of further fonts")
    parser.add_argument("--out", type=Path, default=REJECTOR_FILE, help="file to write")

    def command() -> int:
        options = parser.parse_args(argv)
        measure(options.fonts) if options.measure else make(options.out, options.fonts)
        return 0

    return run_tool(command)


if __name__ == "__main__":
    sys.exit(main())
