"""`mlpcore info`: settings, curve and errors of trained networks, and how to go on."""

import argparse
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from mlpcore.commands.networks import add_network_arguments, network_name
from mlpcore.commands.options import command_main, command_parser, command_text
from mlpcore.data.dataset import test_images_text
from mlpcore.errors import shown
from mlpcore.inference.inputs import takes_digits
from mlpcore.network.architecture import format_hidden_layers, format_layer_sizes
from mlpcore.report.console import epoch_cells, epoch_columns
from mlpcore.report.results import result_table, setting_lines
from mlpcore.report.tables import NONE, Rows, kind_of_test, text_table
from mlpcore.store.committee import CommitteeFolder, holds_committee
from mlpcore.store.documents import from_json
from mlpcore.store.run_folder import Run, holds_run, read_settings
from mlpcore.store.trained import ORIGIN, TrainedNetwork
from mlpcore.terminal import say
from mlpcore.training.state import EpochMetrics, TrainingState

TEXT = """\
Shows what a run, a committee or a file of weights contains: settings, a few
epochs, errors, and how to resume. The run may still be training."""

#: The lines of a curve.
EPOCHS_SHOWN = 5

#: The metadata that are shown.
SHOWN = *ORIGIN, "n_test", "test_errors"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The networks; there are no options but --help."""
    parser = command_parser("info", "RUN|WEIGHTS...", TEXT, "runs/net1")
    add_network_arguments(parser, "+")
    return parser.parse_args(argv)


def describe_run(run: Run, state: TrainingState) -> Iterator[str]:
    """The lines of a run."""
    config, data, done = run.config, run.data, state.epoch
    net, n = format_hidden_layers(config.hidden_layers), state.network.n_parameters
    yield f"run {shown(run.folder)}: {net}, {n:,} weights; {done} of {config.epochs} epochs done"
    images = test_images_text(data.n_test, data.held_out)
    yield f"data: {data.name} ({shown(data.source)}): {data.n_train:,} training and {images}"
    yield _wrapped(line.removeprefix("- ") for line in setting_lines(config, config.backend))
    if rated := [each for each in state.history if each.validation_errors is not None]:
        last = len(rated) - 1
        places = sorted({round(last * k / (EPOCHS_SHOWN - 1)) for k in range(EPOCHS_SHOWN)})
        rows = [epoch_cells(rated[k], config.epochs) for k in places]
        yield text_table([epoch_columns(data.held_out), *rows])
        yield text_table(result_table(config, data, state))
    more = ["--epochs", str(2 * done)] if done == config.epochs else []
    yield f"to resume: {command_text('train', '--resume', str(run.folder), *more)}"


def describe_committee(folder: Path) -> Iterator[str]:
    """The lines of a committee."""
    committee = CommitteeFolder.open(folder)
    data = committee.data
    yield f"committee {shown(folder)}: {len(committee.members)} members on {data.name}"
    trained = True
    rows: Rows = [("member", "seed", "epochs", "validation", kind_of_test(data.held_out))]
    for each in committee.members:
        path, done, errors = committee.run_folder(each), 0, (NONE, NONE)
        if holds_run(path):
            committee.check_run(each)
            state = Run(path, each.config, data).load()
            done, best = state.epoch, state.best_metrics
            if best is not None:
                errors = f"{best.validation_error:.2f} %", f"{best.test_error:.2f} %"
        rows.append((each.name, str(each.config.seed), f"{done}/{each.config.epochs}", *errors))
        trained = trained and done == each.config.epochs
    yield text_table(rows)
    yield (
        f"the error of all together: {command_text('evaluate', str(folder))}"
        if trained
        else "to resume: repeat the command that began it"
    )


def describe_weights(path: Path) -> Iterator[str]:
    """The lines of a file of weights."""
    found, name = TrainedNetwork.read(path), network_name(path)
    net, values = found.network, dict(found.metadata)
    if "metrics" in values:
        values |= structs.asdict(from_json(values["metrics"], EpochMetrics))
    layers = format_layer_sizes(net.layer_sizes)
    yield f"weights {name}: {layers}, {net.activation}, {net.loss}, {net.n_parameters:,} weights"
    yield _wrapped(f"{each.replace('_', ' ')}: {values[each]}" for each in SHOWN if each in values)
    if takes_digits(found.pixels):
        yield f"to ask it: {command_text('predict', name, 'picture.png')}"


def _wrapped(items: Iterable[str]) -> str:
    return textwrap.fill("; ".join(items), 100)


def info(options: argparse.Namespace) -> int:
    """Prints each network; returns the exit status."""
    for path in options.networks:
        if holds_committee(path):
            lines = describe_committee(path)
        elif holds_run(path):
            run = Run(path, *read_settings(path))
            lines = describe_run(run, run.load())
        else:
            lines = describe_weights(path)
        for line in lines:
            say(line)
    return 0


main = command_main(parse, info)
