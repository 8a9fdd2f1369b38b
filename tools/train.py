"""Trains a multilayer perceptron on deformed digits, and resumes a training that was stopped."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from mlpcore import InputError, backends, dataset
from mlpcore.architecture import format_hidden_layers, parse_hidden_layers
from mlpcore.backends import Backend
from mlpcore.checkpoint import LAST, Run, check_output
from mlpcore.command_line import (
    Parser,
    add_backend_options,
    add_data_options,
    number,
    run_tool,
    whole_number,
)
from mlpcore.config import TrainingConfig
from mlpcore.console import Console
from mlpcore.deformation import IDENTITY, DeformationParameters
from mlpcore.evaluation import Evaluation, evaluate
from mlpcore.figures import evaluation_figures, network_figures, write_figures
from mlpcore.files import atomic_write
from mlpcore.idx import shown
from mlpcore.network import Network
from mlpcore.report import report, result_table
from mlpcore.state import EpochMetrics
from mlpcore.training import Diverged, Trainer

#: Those that were given, by name.
Options: TypeAlias = dict[str, Any]

#: Samples that a run without --epochs sees, 30 epochs of MNIST: some minutes for net1.
DEFAULT_SAMPLES = 1_800_000
MAX_DEFAULT_EPOCHS = 500

DEFORMATION = ("sigma", "alpha", "beta", "gamma")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options; those that were not given are absent."""
    parser = Parser(description=__doc__, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    add = parser.add_argument
    add("--arch", help="net1 ... net5, or widths such as 1000,500 (net1)")
    add("--epochs", type=whole_number, help="passes over the training set (1.8 million samples)")
    add("--lr", type=number, help="learning rate of the first epoch (0.001)")
    add("--lr-end", type=number, help="of the last epoch (by the paper's schedule)")
    add("--sigma", type=number, help="smoothness of the elastic deformation, pixels (6)")
    add("--alpha", type=number, help="strength of the elastic deformation, pixels (36)")
    add("--beta", type=number, help="greatest rotation or shear, degrees (15)")
    add("--gamma", type=number, help="greatest change of width and height, percent (15)")
    add("--no-deform", action="store_true", help="train on the images as they are")
    add_backend_options(parser)
    add("--schedule", help=f"of the updates: {' or '.join(backends.SCHEDULES)} (deferred)")
    add("--seed", type=whole_number, help="of all random numbers (0)")
    add_data_options(parser)
    add("--out", help="folder of the run (runs/ARCH-DATE-TIME)")
    add("--resume", metavar="RUN", help="go on with the run in this folder")
    return parser.parse_args(argv)


def make_config(
    options: Options, backend: Backend, similar_labels: Iterable[int] = (), epochs: int = 1
) -> TrainingConfig:
    """The settings; `epochs` is for when the options do not say."""
    deformation = IDENTITY
    given = {name: options[name] for name in DEFORMATION if name in options}
    if "no_deform" not in options:
        deformation = DeformationParameters(**given, similar_labels=tuple(similar_labels))
    elif given:
        raise InputError(f"--no-deform together with --{next(iter(given))}: expected one of them")
    return TrainingConfig(
        hidden_layers=parse_hidden_layers(options.get("arch", "net1")),
        epochs=options.get("epochs", epochs),
        learning_rate=options.get("lr", TrainingConfig.learning_rate),
        learning_rate_end=options.get("lr_end"),
        deformation=deformation,
        seed=options.get("seed", TrainingConfig.seed),
        backend=backend.name,
        schedule=backend.schedule,
    )


def default_folder(config: TrainingConfig) -> Path:
    """A folder that does not exist yet."""
    name = format_hidden_layers(config.hidden_layers).replace(",", "-")[:100]
    stem = Path("runs", f"{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}")
    folder, number = stem, 1
    while os.path.lexists(folder):
        number += 1
        folder = stem.with_name(f"{stem.name}-{number}")
    return folder


def describe(console: Console, backend: Backend, data: dataset.Dataset) -> None:
    """Says what computes, and on what."""
    if data.notice:
        console.print(f"note: {data.notice}")
    height, width = data.image_shape
    console.print(
        f"data: {data.name} ({data.source}): {len(data.train_labels):,} training and "
        f"{len(data.test_labels):,} test images of {height} x {width}"
    )
    console.print(f"backend: {backend.description}")


def start(options: Options, console: Console) -> int:
    """A new run."""
    backend = backends.get(
        options.get("backend", "auto"), options.get("threads"), options.get("schedule")
    )
    config = make_config(options, backend)
    folder = Path(options["out"]) if options.get("out") else default_folder(config)
    check_output(folder)
    data = dataset.load(options.get("data"), name=options.get("dataset"))
    epochs = max(1, min(DEFAULT_SAMPLES // len(data.train_labels), MAX_DEFAULT_EPOCHS))
    config = make_config(options, backend, data.similar_labels, epochs)
    trainer = Trainer(config, data, backend)
    describe(console, backend, data)
    with stopping(trainer) as signals:
        run = Run.create(folder, config, data, backend.description, trainer.state)
        with contextlib.closing(run):
            return train(trainer, run, console, signals)


def resume(options: Options, console: Console) -> int:
    """A run that was stopped."""
    for name in options:
        if name not in ("resume", "threads", "data"):
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} together with --resume: expected only --threads and --data")
    with contextlib.closing(Run.open(Path(options["resume"]))) as run:
        backend = backends.get(run.config.backend, options.get("threads"), run.config.schedule)
        state = run.load()
        data = run.data.load(options.get("data"))
        run.check_data(data)
        trainer = Trainer(run.config, data, backend, state=state)
        describe(console, backend, data)
        with stopping(trainer) as signals:
            return train(trainer, run, console, signals)


def train(trainer: Trainer, run: Run, console: Console, signals: list[int]) -> int:
    """Trains and presents the result; returns the exit status."""
    name = format_hidden_layers(run.config.hidden_layers)
    console.print(
        f"network: {name}, {trainer.state.network.n_parameters:,} weights; run: {shown(run.folder)}"
    )
    if trainer.state.seconds:
        console.print(f"resumed: {place(trainer)}")
    trainer.observers = (run, console)
    try:
        finished = trainer.run()
    except Diverged as error:
        raise InputError(
            f"{error}; {shown(run.folder / LAST)} holds the weights before that"
        ) from None
    if not finished:
        console.print(f"stopped: {place(trainer)}; saved. To go on:")
        console.print(f"  {resume_command(run)}")
        return 128 + signals[0]
    present(trainer, run, console)
    return 0


def present(trainer: Trainer, run: Run, console: Console) -> None:
    """The result of a finished run, as a report with figures and as a table."""
    state, data = trainer.state, trainer.dataset
    assert state.best is not None
    test: Evaluation | None = None
    figures: list[Path] = []
    try:
        test = evaluate(state.best, data.test_images, data.test_labels, trainer.backend)
        figures = draw(run.folder / "figures", state.best, state.history, data, test)
    except Exception as error:  # whatever it is, the training is done
        reason = " ".join(str(error).split())
        console.print(f"note: no figures are drawn: {type(error).__name__}: {reason}")
    files = [path.relative_to(run.folder).as_posix() for path in figures]
    text = report(run.config, run.data, state, trainer.backend.description, test, files)
    atomic_write(run.folder / "report.md", text.encode(errors="replace"))
    console.print()
    console.print_table(result_table(run.config, run.data, state))


def draw(
    folder: Path,
    network: Network,
    history: list[EpochMetrics],
    data: dataset.Dataset,
    test: Evaluation,
) -> list[Path]:
    """The figures of a finished run."""
    figures = evaluation_figures(data.test_images, test)
    figures |= network_figures(network, data.image_shape, history)
    return write_figures(folder, figures)


def place(trainer: Trainer) -> str:
    """How far training has come."""
    state = trainer.state
    text = f"{state.epoch} of {trainer.config.epochs} epochs done"
    if state.progress.samples:
        text += f", and {state.progress.samples:,} of {trainer.n_samples:,} samples of the next"
    return text


def resume_command(run: Run) -> str:
    """What to type."""
    python = shutil.which("python")
    same = python is not None and os.path.realpath(python) == os.path.realpath(sys.executable)
    script = os.path.relpath(__file__)
    return shlex.join(["python" if same else sys.executable, script, "--resume", str(run.folder)])


@contextlib.contextmanager
def stopping(trainer: Trainer) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM end training at the next sample; yields the signals that came.

    They only set a flag, so that however many come, none interrupts the saving.
    """
    signals: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        trainer.request_stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0 when trained to the end, 2 for bad input, 128 + n for signal n."""

    def command() -> int:
        options = vars(parse(argv))
        with Console(sys.stdout) as console:
            return (resume if "resume" in options else start)(options, console)

    return run_tool(command, "a smaller --arch or less data", "stopped before training began")


if __name__ == "__main__":
    sys.exit(main())
