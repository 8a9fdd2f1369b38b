"""Pictures in a folder for each class, whose name is the label.

They are ``DIR/train/CLASS/*.png`` and ``DIR/test/CLASS/*.png``, or ``DIR/CLASS/*.png``.
"""

from pathlib import Path

import numpy as np

from mlpcore.data.arrays import Part, classes_of, most_bytes
from mlpcore.data.image_files import SUFFIXES, picture_files, read_picture
from mlpcore.data.pixels import BYTES
from mlpcore.errors import InputError, shown
from mlpcore.files import is_hidden
from mlpcore.typing import UInt8Array

TRAIN, TEST = ("train", "training"), ("test", "testing")


def class_folders(folder: Path) -> list[Path]:
    """The folders in a folder that hold pictures, sorted by name; hidden ones are left out."""
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return [path for path in folders if not is_hidden(path.name) and picture_files(path)]


def pictures_in(folder: Path) -> list[Path]:
    """The pictures in a folder or, if it holds none itself, those in a folder for each class.

    An InputError when there are none, or the folder cannot be read.
    """
    found = picture_files(folder)
    found = found or [path for each in class_folders(folder) for path in picture_files(each)]
    if not found:
        raise InputError(
            f"the folder {shown(folder)} holds no pictures: expected some in it, or in its folders"
        )
    return found


def recognises(path: Path) -> bool:
    """Whether a path is a folder that has folders of pictures."""
    return path.is_dir() and bool(class_folders(_split(path, TRAIN) or path))


def read(folder: Path) -> tuple[Part, Part | None]:
    """Read the training and the test set.

    If most borders in the training set are light, it is the background that is, in both.
    """
    train_folder, test_folder = _split(folder, TRAIN), _split(folder, TEST)
    if train_folder is None:
        train_folder, test_folder = folder, None
    train = _read(train_folder)
    test = None if test_folder is None else _read(test_folder)
    images = train.images
    borders = images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]
    is_light = np.mean([np.mean(each > 127) for each in borders]) > 0.5
    ends = BYTES[::-1] if is_light else BYTES
    return train._replace(ends=ends), test and test._replace(ends=ends)


def _split(folder: Path, names: tuple[str, ...]) -> Path | None:
    """The folder of a part; "test" may also be the name of a class, which has no folders."""
    paths = [path for path in sorted(folder.iterdir()) if path.name.lower() in names]
    return next((path for path in paths if path.is_dir() and class_folders(path)), None)


def _read(folder: Path) -> Part:
    """The images of all classes, as bytes, and their labels."""
    images: list[UInt8Array] = []
    codes: list[int] = []
    folders, limit = class_folders(folder), most_bytes()
    for other in sorted({*folder.iterdir()} - {*folders}):
        files = [path for path in sorted(other.glob("[!.]*")) if path.is_file()]
        if files and not is_hidden(other.name):
            kinds = ", ".join(SUFFIXES)
            raise InputError(
                f"{shown(files[0])} is no picture ({kinds}): expected some in each folder"
            )
    for each in folder.glob("[!.]*/"):
        if deeper := each.is_dir() and class_folders(each):
            raise InputError(
                f"{shown(deeper[0])} holds pictures: expected all of a class in {shown(each)}"
            )
    for code, each in enumerate(folders):
        for path in picture_files(each):
            image = read_picture(path).grey
            if images and image.shape != images[0].shape:
                found, expected = (f"{w} x {h}" for h, w in (image.shape, images[0].shape))
                raise InputError(
                    f"{shown(path)} has {found} pixels: expected {expected}, like the first "
                    "picture; ImageMagick makes all alike: mogrify -resize 28x28! FILES"
                )
            if len(images) * image.nbytes > limit:
                raise InputError(
                    f"{shown(folder)} holds more than {limit:,} pixels: expected fewer"
                )
            images.append(image)
            codes.append(code)
    where = f"the names in {shown(folder)}"
    classes = classes_of([each.name for each in folders], where)
    return Part(np.stack(images), classes[codes], shown(folder), where)
