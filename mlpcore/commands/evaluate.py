"""`mlpcore evaluate`: what trained networks get wrong, alone and as a committee."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlpcore import backends
from mlpcore.backends.base import Backend
from mlpcore.commands.copies import add_copies_options, given_copies
from mlpcore.commands.networks import add_network_arguments
from mlpcore.commands.options import (
    add_backend_options,
    add_data_options,
    command_parser,
    run_tool,
)
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.copies import Copies
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_no_link, check_writable
from mlpcore.inference import TrainedClassifier
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.figures import evaluation_figures, network_figures, write_figures
from mlpcore.report.page import title_of
from mlpcore.report.results import confusion_table, evaluation_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.committee import with_members
from mlpcore.store.run_folder import check_result_file, read_history
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say
from mlpcore.training.state import EpochMetrics

#: Misclassified samples that are listed without --all.
LISTED = 20

#: The confusion matrix of more classes does not fit a terminal.
MAX_COLUMNS = 20

TEXT = """\
Counts what networks get wrong on a test set. A folder of a run stands for its
best network, that of a committee for its members. Several networks are
evaluated alone and as a committee."""


@dataclass(frozen=True)
class Candidate:
    """A network to evaluate: what the user called it, and the epochs of a run, if to be drawn."""

    path: Path
    trained: TrainedNetwork
    history: Sequence[EpochMetrics]

    @property
    def layers(self) -> str:
        """Its layer sizes, and the width of the ink if it has one."""
        sizes, width = (
            format_layer_sizes(self.trained.network.layer_sizes),
            self.trained.input.width,
        )
        return sizes if width is None else f"{sizes}, width {width}"


def read_candidate(path: Path, with_history: bool) -> Candidate:
    """Reads a run's folder, in which a training may go on, or a file of weights."""
    trained = TrainedNetwork.read(path)
    return Candidate(path, trained, read_history(path) if trained.data and with_history else ())


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = command_parser(
        "evaluate", "RUN|WEIGHTS... [options]", TEXT, "runs/net1 --figures figures"
    )
    add = parser.add_argument
    add_network_arguments(parser, "+")
    add_data_options(parser)
    add_backend_options(parser)
    add_copies_options(parser)
    add("--all", action="store_true", help=f"list all misclassified images, not just {LISTED}")
    add("--json", type=Path, metavar="FILE", help="write all results as JSON")
    add("--figures", type=Path, metavar="DIR", help="draw errors, learning curves and weights")
    return parser.parse_args(argv)


def load_data(options: argparse.Namespace, candidates: Sequence[Candidate]) -> Dataset:
    """The data that the options name, else the data of the first run, else what is found."""
    first = next((each.trained.data for each in candidates if each.trained.data), None)
    if options.data or options.dataset or first is None:
        return dataset.load(options.data, name=options.dataset)
    return first.load()


def check_fit(candidates: Sequence[Candidate], data: Dataset) -> None:
    """Raises InputError unless the networks take these images and know these classes."""
    expected = data.image_shape, data.n_classes
    for each in candidates:
        found = each.trained.input.image_shape, len(each.trained.classes)
        if found != expected:
            (height, width), n_classes = found
            raise InputError(
                f"{shown(each.path)} is a network for images of {height} x {width} and "
                f"{n_classes} classes: expected {data.image_shape[0]} x {data.image_shape[1]} and "
                f"{data.n_classes} for {data.name}; --data names other data"
            )


def describe(
    candidates: Sequence[Candidate], data: Dataset, backend: Backend, copies: Copies | None
) -> None:
    """Prints the data, the backend and the copies, with a note for networks of other data."""
    height, width = data.image_shape
    if data.notice:
        say(f"note: {data.notice}")
    sha256 = DataSummary.of(data).sha256
    for each in candidates:
        own, name = each.trained.data, each.trained.input.data
        if own and own.sha256 != sha256:
            part = ", a part held out" if own.held_out else ""
            say(
                f"note: {shown(each.path)} was trained on other data than these: "
                f"{shown(own.name)} as in {shown(own.source)}{part}"
            )
        elif not own and name not in ("", data.name):
            say(f"note: {shown(each.path)} was trained on data called {shown(name)}")
    say(
        f"data: {data.name} ({shown(data.source)}): "
        f"{dataset.test_images_text(len(data.test_labels), data.held_out)} of {height} x {width}"
    )
    say(f"backend: {backend.description}")
    if copies is not None:
        say(copies.describe(len(candidates)))
    say()


def show(
    candidates: Sequence[Candidate],
    whole: Evaluation,
    members: Sequence[Evaluation],
    list_all: bool,
    classes: Sequence[object],
) -> None:
    """Prints the tables."""
    rows = [(shown(each.path), each.layers, result) for each, result in zip(candidates, members)]
    of = ""
    if len(rows) > 1:
        of = " of the committee"
        rows.append((f"committee of {len(rows)}", "", whole))
    say(text_table(evaluation_table(rows)))
    if whole.n_classes <= MAX_COLUMNS:
        say(f"\nconfusion matrix{of}, rows: label, columns: first guess")
        say(text_table(confusion_table(whole, classes)))
    if whole.errors:
        listed = whole.errors if list_all else min(whole.errors, LISTED)
        say(f"\nmisclassified{of}, with the two greatest outputs")
        say(text_table(misclassified_table(whole, listed, classes)))
        if listed < whole.errors:
            say(f"and {whole.errors - listed:,} more: --all lists them")


def document(
    candidates: Sequence[Candidate],
    whole: Evaluation,
    members: Sequence[Evaluation],
    data: Dataset,
    classifier: TrainedClassifier,
) -> str:
    """Everything, as JSON."""
    content: dict[str, object] = {
        "data": {"name": data.name, "source": data.source, "n_test": len(data.test_labels)},
        "backend": classifier.backend.description,
        "networks": [
            {"path": str(each.path), "layer_sizes": each.trained.network.layer_sizes}
            | ({} if each.trained.input.width is None else {"width": each.trained.input.width})
            | result.to_json()
            for each, result in zip(candidates, members)
        ],
    }
    if len(members) > 1:
        content["committee"] = whole.to_json()
    if classifier.copies is not None:
        content["copies"] = classifier.copies.to_json(len(members))
    return json.dumps(content) + "\n"


def draw(
    folder: Path, candidates: Sequence[Candidate], whole: Evaluation, data: Dataset
) -> list[Path]:
    """Writes the figures of the whole, and of each network."""
    title = title_of(candidates[0].trained.network, data.name)
    if len(candidates) > 1:
        title = f"Committee of {len(candidates)} networks on {data.name}"
    paths = write_figures(folder, evaluation_figures(data.test_images, whole, title))
    for number, each in enumerate(candidates, 1):
        suffix = f"-{number}" if len(candidates) > 1 else ""
        trained = each.trained
        drawn = network_figures(
            trained.network,
            data.image_shape,
            each.history,
            trained.data.held_out if trained.data else 0,
            trained.input.data,
        )
        paths += write_figures(folder, {f"{name}{suffix}": drawn[name] for name in drawn})
    return paths


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 whatever the error rate, 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        copies = given_copies(options)
        backend = backends.get(options.backend or "auto", options.threads)
        if options.json:
            check_result_file(options.json)
        if options.figures:
            check_no_link(options.figures)
            check_writable(options.figures)
        paths = with_members(options.networks)
        candidates = [read_candidate(path, bool(options.figures)) for path in paths]
        classifier = TrainedClassifier([each.trained for each in candidates], backend, copies)
        data = load_data(options, candidates)
        check_fit(candidates, data)
        describe(candidates, data, backend, copies)
        whole, members = classifier.evaluate(data.test_images, data.test_labels)
        show(candidates, whole, members, options.all, data.classes)
        if options.json:
            content = document(candidates, whole, members, data, classifier)
            atomic_write(options.json, content.encode())
        if options.figures:
            say()
            for path in draw(options.figures, candidates, whole, data):
                say(f"figure: {shown(path)}")
        return 0

    return run_tool(command)
