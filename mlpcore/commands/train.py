"""`mlpcore train`: a network trained on deformed digits, or a stopped run that goes on."""

import argparse
import contextlib
import datetime
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.commands import runs
from mlpcore.commands.options import (
    DEFORMATION,
    Parser,
    add_backend_options,
    add_data_options,
    command_main,
    command_parser,
    command_text,
    given_deformation,
    number,
    whole_number,
)
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.strokes import check_one_and_seven
from mlpcore.deformation.parameters import DeformationParameters
from mlpcore.errors import InputError, shown
from mlpcore.files import check_writable
from mlpcore.network.architecture import format_hidden_layers, parse_hidden_layers
from mlpcore.report.console import ProgressBar
from mlpcore.report.tables import duration
from mlpcore.store.committee import holds_committee
from mlpcore.store.run_folder import Run, check_output, holds_run
from mlpcore.training.config import CHOICES, MAX_EPOCHS, MILESTONES, TrainingConfig
from mlpcore.training.pace import seconds_per_epoch
from mlpcore.training.recipes import DEFAULT_RECIPE, RECIPES
from mlpcore.training.trainer import Trainer

#: The options that were given, by name.
Options: TypeAlias = dict[str, Any]

#: Samples that a run without --epochs sees: 30 epochs of MNIST, some minutes for net1.
DEFAULT_SAMPLES = 1_800_000
MAX_DEFAULT_EPOCHS = 500

MAX_MINUTES = 1_000_000

#: The settings that are names, for --help-all.
MEANINGS = {
    "activation": "activation of hidden neurons",
    "loss": "tanh or softmax outputs",
    "init": "initial weights",
    "input_range": "range of inputs, [-1, 1] or [0, 1]",
    "decay": "how the learning rate falls",
}

#: The options that may stand beside --resume.
RESUMED = ("epochs", "threads", "data")


def parse(argv: Sequence[str]) -> Options:
    """The options that were given."""
    parser = command_parser(
        "train",
        "[options]",
        "Trains on digits deformed anew every epoch. Ctrl-C stops; --resume continues.",
        "--arch net4 --epochs 100 --out runs/net4",
        argument_default=argparse.SUPPRESS,
    )
    length = add_settings(parser, argv)
    add = parser.add_argument
    time = "train for about X minutes, instead of --epochs"
    length.add_argument("--minutes", type=minutes, metavar="X", help=time)
    add("--out", metavar="DIR", help="folder of the run (runs/NET-DATE-TIME)")
    add("--resume", metavar="RUN", help="continue this run, up to --epochs if given")
    return vars(parser.parse_args(argv))


def minutes(text: str) -> float:
    """The type of --minutes."""
    found: float = number(text)
    if not 0 < found <= MAX_MINUTES:
        raise argparse.ArgumentTypeError(f"{text}, expected more than 0, at most {MAX_MINUTES:,}")
    return found


def add_settings(parser: Parser, argv: Sequence[str], n_archs: str | None = None) -> Any:
    """The options of every command that trains: settings, data, and what computes.

    `n_archs` is how many architectures --arch takes, as argparse says it. Returns the group of
    --epochs, whose options exclude each other.
    """
    add, add_number = parser.add_argument, parser.add_number
    group = parser.add_argument_group("further options")

    def further(flag: str, *, help: str, **settings: Any) -> None:
        """Adds an option that --help-all explains, and --help does not."""
        text = help if "--help-all" in argv else argparse.SUPPRESS
        group.add_argument(flag, help=text, **settings)

    everything = "show the settings of recipes and of the deformation, too"
    add("--help-all", action="help", help=everything)
    archs = "net1 ... net5, or widths such as 1000,500 (net1)"
    add("--arch", metavar="NET", nargs=n_archs, help=archs)
    length = parser.add_mutually_exclusive_group()
    epochs = f"passes over the training images (MNIST: 30, digits: {MAX_DEFAULT_EPOCHS})"
    length.add_argument("--epochs", type=whole_number, metavar="N", help=epochs)
    recipes = f"{', '.join(RECIPES)} ({DEFAULT_RECIPE}): see --help-all"
    add("--recipe", choices=RECIPES, metavar="NAME", help=recipes)
    add_number("--lr", "initial learning rate (modern: 0.01, else 0.001)")
    what = "train on the images as they are; see also --help-all"
    add("--no-deform", action="store_true", help=what)
    add_data_options(parser)
    parser.add_whole("--hold-out", "test on the last N training images (or of each class)")
    parser.add_whole("--seed", "seed of all random numbers (0)")
    add_backend_options(parser)
    for name, meaning in DEFORMATION.items():
        add_number(f"--{name}", meaning, further)
    for name, choices in CHOICES.items():
        text = f"{MEANINGS[name]}: {', '.join(choices)}"
        further(f"--{name.replace('_', '-')}", choices=choices, metavar="NAME", help=text)
    last = "last learning rate, with --decay factor (--lr / 1000 after 2000 epochs)"
    add_number("--lr-end", last, further)
    add_number("--lr-ratio", "learning rate of a layer divided by the next layer's", further)
    target = "with --loss squared: target of the right class; the others get -X"
    add_number("--target", target, further)
    add_number("--ones-and-sevens", "share of 1s and 7s written as in other countries (0)", further)
    warm_up = "training images over which the learning rate rises (0)"
    parser.add_whole("--warm-up", warm_up, further)
    return length


def make_config(options: Options, backend: str) -> TrainingConfig:
    """The settings of a run as far as they do not depend on data. Options come before the recipe.

    The option of a setting has its name, with "lr" for "learning_rate".
    """
    deformation = given_deformation(options)
    if "no_deform" in options:
        if deformation:
            name = next(iter(deformation))
            raise InputError(f"--no-deform together with --{name}: expected one of them")
        deformation = {"alpha": 0, "beta": 0, "gamma": 0}
    hidden = parse_hidden_layers(options.get("arch", "net1"))
    settings = RECIPES[options.get("recipe", DEFAULT_RECIPE)].settings_of(hidden)
    for name in TrainingConfig.__struct_fields__:
        option = name.replace("learning_rate", "lr")
        if option in options:
            settings[name] = options[option]
    settings |= {"backend": backend, "schedule": backends.default_schedule(backend)}
    settings |= {"hidden_layers": hidden, "deformation": DeformationParameters(**deformation)}
    config = TrainingConfig(**settings)
    if "target" in options and config.loss == "cross-entropy":
        raise InputError(
            f"--target {config.target:g} with the loss cross-entropy, which has none: expected "
            "--loss squared, or --recipe paper"
        )
    return config


def fitted(config: TrainingConfig, options: Options, data: Dataset) -> TrainingConfig:
    """The settings with what depends on data: similar labels, and epochs if none are given."""
    if config.ones_and_sevens:
        check_one_and_seven(data.classes)
    similar = {"similar_labels": data.similar_labels}
    config = structs.replace(config, deformation=structs.replace(config.deformation, **similar))
    if "epochs" in options:
        return config
    epochs = max(1, min(DEFAULT_SAMPLES // len(data.train_labels), MAX_DEFAULT_EPOCHS))
    return config.with_epochs(epochs, begun=0)


def load_data(options: Options) -> Dataset:
    """The data that the options name."""
    data = dataset.load(options.get("data"), name=options.get("dataset"))
    return data.hold_out(options["hold_out"]) if "hold_out" in options else data


def lasting(
    minutes: float, config: TrainingConfig, data: Dataset, backend: Backend, console: ProgressBar
) -> TrainingConfig:
    """The settings with as many epochs as take so long, measured on a part of one."""
    validated, other = seconds_per_epoch(config, data, backend)
    epochs = 60 * minutes / validated
    if config.decay == "linear":  # whose epochs are validated some MILESTONES times
        epochs += max(0, epochs - MILESTONES) * (validated / other - 1)
    config = config.with_epochs(int(max(1, min(epochs, MAX_EPOCHS))), begun=0)
    n = config.epochs
    n_validated = sum(map(config.validates, range(1, n + 1)))
    taken = duration(n_validated * validated + (n - n_validated) * other)
    console.print(f"--minutes {minutes:g}: {n:,} epoch{'s' * (n > 1)}, in about {taken}")
    return config


def resume_command(folder: Path, options: Options) -> str:
    """The command that goes on with a run. Data are named if they have moved."""
    arguments = ["--resume", str(folder)]
    if "threads" in options:
        arguments += ["--threads", str(options["threads"])]
    if "resume" in options and "data" in options:
        arguments += ["--data", os.path.abspath(os.path.expanduser(options["data"]))]
    return command_text("train", *arguments)


def start(options: Options, console: ProgressBar) -> int:
    """Trains a new run. Bad options are refused before data are read."""
    backend = backends.get(options.get("backend", "auto"), options.get("threads"))
    config = make_config(options, backend.name)
    net = format_hidden_layers(config.hidden_layers).replace(",", "-")[:100]
    stem = f"runs/{net}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    free = (each for each in names if not os.path.lexists(each))
    folder = Path(options["out"] if "out" in options else next(free))
    if holds_committee(folder):
        raise InputError(f"{shown(folder)} holds a committee: expected a new folder")
    check_output(folder)
    data = load_data(options)
    config = fitted(config, options, data)
    if "minutes" in options:
        config = lasting(options["minutes"], config, data, backend, console)
    trainer = Trainer(config, data, backend)
    while "out" not in options:  # another process may have taken the name in the meantime
        try:
            folder.mkdir(parents=True)
            break
        except FileExistsError:
            folder = Path(next(free))
    run = Run.create(folder, config, data, backend.description)
    with contextlib.closing(run):
        return runs.train(run, trainer, data, console, resume_command(folder, options))


def resume(options: Options, console: ProgressBar) -> int:
    """Goes on with a run."""
    for name in options:
        if name not in ("resume", *RESUMED):
            option, *known = (f"--{each.replace('_', '-')}" for each in (name, *RESUMED))
            raise InputError(f"{option} together with --resume: expected only {', '.join(known)}")
    folder = Path(options["resume"])
    if not holds_run(folder):
        fault = "holds no run" if folder.is_dir() else "does not exist"
        raise InputError(f"{shown(folder)} {fault}: expected the folder of a run")
    parent = Path(os.path.abspath(folder)).parent
    if "epochs" in options and holds_committee(parent):
        expected = "expected no --epochs, because the committee fixes them"
        raise InputError(
            f"{shown(folder)} is a member of the committee in {shown(parent)}: {expected}"
        )
    with contextlib.closing(Run.open(folder)) as run:
        backend = backends.get(run.config.backend, options.get("threads"), run.config.schedule)
        state, config = run.load(), run.config
        if options.get("epochs", config.epochs) != config.epochs:
            config = config.with_epochs(options["epochs"], state.begun)
        done = state.epoch == config.epochs == run.config.epochs
        if done and (folder / runs.REPORT).is_file() and any((folder / "figures").glob("*")):
            from mlpcore.commands.info import describe_run  # not above: few need it

            for line in describe_run(run, state):
                console.print(line)
            return 0
        if state.epoch < config.epochs:
            check_writable(folder)  # rather than lose an epoch that cannot be saved
        data = run.data.load(options.get("data"))
        run.check_data(data)
        trainer = Trainer(config, data, backend, state=state)
        if config is not run.config:
            console.print(change_of_epochs(run.config, config, state.begun))
            with contextlib.suppress(OSError):
                (folder / runs.REPORT).unlink()  # it is that of the epochs before
            run.change_settings(config)
        return runs.train(run, trainer, data, console, resume_command(folder, options))


def change_of_epochs(before: TrainingConfig, after: TrainingConfig, begun: int) -> str:
    """A line on the change that a new number of epochs makes to the learning rate."""
    text = f"epochs: {after.epochs} instead of {before.epochs}"
    if not 0 < begun < after.epochs:
        return text
    last, following = after.learning_rate_at(begun - 1), after.learning_rate_at(begun)
    middle = f" {following:.3g} in the next," * (after.epochs - begun > 1)
    return (
        f"{text}; the learning rate is {last:.3g} in epoch {begun},{middle} "
        f"and {after.learning_rate_at(after.epochs - 1):.3g} in the last"
    )


def train(options: Options) -> int:
    """Returns the exit status: 0 when trained to the end, 128 + n for signal n."""
    with ProgressBar(sys.stdout) as console:
        return (resume if "resume" in options else start)(options, console)


main = command_main(parse, train, "a smaller --arch or less data", "stopped before training began")
