"""`mlpcore train`: a network trained on deformed digits, or a stopped run that goes on."""

from __future__ import annotations

import argparse
import datetime
import functools
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.commands import runs
from mlpcore.commands.options import (
    add_backend_options,
    add_data_options,
    add_deformation_options,
    command_parser,
    command_text,
    folder_name,
    given_deformation,
    number,
    run_tool,
    whole_number,
)
from mlpcore.data import dataset
from mlpcore.deformation.parameters import IDENTITY, DeformationParameters
from mlpcore.errors import InputError, shown
from mlpcore.network.architecture import format_hidden_layers, parse_hidden_layers
from mlpcore.report.console import Console
from mlpcore.report.tables import duration
from mlpcore.store.committee import holds_committee
from mlpcore.store.run_folder import check_output
from mlpcore.training.config import CHOICES, MAX_EPOCHS, TrainingConfig
from mlpcore.training.pace import seconds_per_epoch
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES

#: The options that were given, by name.
Options: TypeAlias = dict[str, Any]

#: Samples that a run without --epochs sees: 30 epochs of MNIST, some minutes for net1.
DEFAULT_SAMPLES = 1_800_000
MAX_DEFAULT_EPOCHS = 500

#: The settings that are names, for --help.
MEANINGS = {
    "activation": "hidden neurons",
    "loss": "tanh or softmax outputs",
    "init": "initial weights",
    "input_range": "[-1, 1] or [0, 1]",
    "decay": "of the learning rate",
}

MAX_MINUTES = 1_000_000

#: The options that are settings of the same value, and the names of these.
SETTINGS = {
    "epochs": "epochs",
    "lr": "learning_rate",
    "lr_end": "learning_rate_end",
    "lr_ratio": "learning_rate_ratio",
    "target": "target",
    "warm_up": "warm_up",
    "width": "width",
    "seed": "seed",
} | {name: name for name in CHOICES}

TEXT = """\
Trains on digits deformed anew every epoch. Ctrl-C stops; --resume goes on."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options that were given; the others are absent."""
    parser = command_parser(
        "train",
        "[options]",
        TEXT,
        "--arch net4 --epochs 100 --out runs/net4",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add_whole = functools.partial(add, type=whole_number, metavar="N")
    add_real = functools.partial(add, type=number, metavar="X")
    add("--arch", metavar="NET", help="net1 ... net5, or widths such as 1000,500 (net1)")
    add_whole("--epochs", help="passes over the training images (30 for MNIST)")
    add_real("--minutes", help="instead: as many passes as take about so long")
    recipes = f"{', '.join(RECIPES)}: of what follows ({DEFAULT_RECIPE})"
    add("--recipe", choices=RECIPES, metavar="NAME", help=recipes)
    for name, choices in CHOICES.items():
        text = f"{', '.join(choices)}: {MEANINGS[name]}"
        add(f"--{name.replace('_', '-')}", choices=choices, metavar="NAME", help=text)
    add_whole("--width", help="bring the ink of images to a width of N pixels")
    add_real("--lr", help="learning rate at first (modern: 0.01, else 0.001)")
    add_real("--lr-end", help="of the last, with decay factor (falls 1000-fold in 2000)")
    add_real("--lr-ratio", help="learning rate of a layer divided by the next layer's")
    add_whole("--warm-up", help="training images over which the learning rate rises (0)")
    add_real("--target", help="squared: wanted output of the class, the others get -X")
    add_deformation_options(parser)
    add("--no-deform", action="store_true", help="train on the images as they are")
    add_data_options(parser)
    add_whole("--hold-out", help="test on the last N training images instead")
    add_backend_options(parser)
    add("--out", type=folder_name, metavar="DIR", help="folder of the run (runs/NET-DATE-TIME)")
    add("--resume", metavar="RUN", help="go on with this run, up to --epochs if given")
    return parser.parse_args(argv)


def make_config(
    options: Options,
    backend: Backend,
    similar_labels: Iterable[int] = (),
    epochs: int = 1,
) -> TrainingConfig:
    """The settings; `epochs` is used if no option gives it. Options come before the recipe."""
    deformation = IDENTITY
    given = given_deformation(options)
    if "no_deform" not in options:
        deformation = DeformationParameters(**given, similar_labels=tuple(similar_labels))
    elif given:
        raise InputError(f"--no-deform together with --{next(iter(given))}: expected one of them")
    hidden = parse_hidden_layers(options.get("arch", "net1"))
    recipe = RECIPES[options.get("recipe", DEFAULT_RECIPE)]
    settings = {"epochs": epochs} | recipe.settings_of(hidden)
    settings |= {name: options[option] for option, name in SETTINGS.items() if option in options}
    config = TrainingConfig(
        hidden_layers=hidden,
        deformation=deformation,
        backend=backend.name,
        schedule=backend.schedule,
        **settings,
    )
    if "target" in options and config.loss == "cross-entropy":
        raise InputError(
            f"--target {config.target:g} with the loss cross-entropy, which has none: expected "
            "--loss squared, or --recipe paper"
        )
    return config


def check_minutes(options: Options) -> None:
    """Raises InputError unless --minutes, if given, is a time and takes the place of --epochs."""
    minutes = options.get("minutes", 1)
    if not 0 < minutes <= MAX_MINUTES:
        raise InputError(f"--minutes {minutes}: expected more than 0, at most {MAX_MINUTES:,}")
    if "minutes" in options and "epochs" in options:
        raise InputError("--minutes together with --epochs: expected one of them")


def default_epochs(
    options: Options,
    backend: Backend,
    data: dataset.Dataset,
    console: Console,
) -> int:
    """The number of epochs of a run without --epochs: those that fill --minutes, or the usual."""
    if "minutes" not in options:
        return max(1, min(DEFAULT_SAMPLES // len(data.train_labels), MAX_DEFAULT_EPOCHS))
    config = make_config(options, backend, data.similar_labels)
    seconds = seconds_per_epoch(config, data, backend)
    epochs = int(max(1, min(60 * options["minutes"] / seconds, MAX_EPOCHS)))
    taken = duration(epochs * seconds)
    console.print(
        f"--minutes {options['minutes']:g}: {epochs:,} epoch{'s' * (epochs > 1)}, in about {taken}"
    )
    return epochs


def default_folder(config: TrainingConfig) -> Path:
    """A folder that does not exist yet."""
    name = format_hidden_layers(config.hidden_layers).replace(",", "-")[:100]
    stem = Path("runs", f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    folder, number = stem, 1
    while os.path.lexists(folder):
        number += 1
        folder = stem.with_name(f"{stem.name}-{number}")
    return folder


def resume_command(
    folder: Path,
    threads: int | None,
    data: str | None = None,
) -> str:
    """What to type to go on; `data` is where these are if they have moved."""
    arguments = ["--resume", str(folder)]
    if threads is not None:
        arguments += ["--threads", str(threads)]
    if data is not None:
        arguments += ["--data", os.path.abspath(os.path.expanduser(data))]
    return command_text("train", *arguments)


def start(options: Options, console: Console) -> int:
    """Trains a new run. Bad options are refused before data are read."""
    backend = backends.get(options.get("backend", "auto"), options.get("threads"))
    check_minutes(options)
    config = make_config(options, backend)
    folder = Path(options["out"]) if "out" in options else default_folder(config)
    if holds_committee(folder):
        raise InputError(f"{shown(folder)} holds a committee: expected a new folder")
    check_output(folder)
    data = dataset.load(options.get("data"), name=options.get("dataset"))
    if "hold_out" in options:
        data = data.hold_out(options["hold_out"])
    epochs = default_epochs(options, backend, data, console)
    config = make_config(options, backend, data.similar_labels, epochs)
    command = resume_command(folder, options.get("threads"))
    return runs.start(folder, config, data, backend, console, command)


def resume(options: Options, console: Console) -> int:
    """Goes on with a run."""
    for name in options:
        if name not in ("resume", "epochs", "threads", "data"):
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option} together with --resume: expected only --epochs, --threads and --data"
            )
    folder, threads, data = Path(options["resume"]), options.get("threads"), options.get("data")
    command = resume_command(folder, threads, data)
    return runs.resume(folder, console, command, threads, data, epochs=options.get("epochs"))


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 when trained to the end, 2 for bad input, 128 + n for signal n."""

    def command() -> int:
        options = vars(parse(argv))
        with Console(sys.stdout) as console:
            return (resume if "resume" in options else start)(options, console)

    return run_tool(command, "a smaller --arch or less data", "stopped before training began")
