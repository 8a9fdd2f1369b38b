"""`mlpcore evaluate`: what trained networks get wrong, alone and as a committee."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

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
from mlpcore.data.width import to_inputs
from mlpcore.errors import InputError, shown
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.committee import Committee, mean_outputs
from mlpcore.evaluation.copies import Copies
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_no_link, check_writable
from mlpcore.network import Network
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.figures import evaluation_figures, network_figures, write_figures
from mlpcore.report.page import title_of
from mlpcore.report.results import confusion_table, evaluation_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.committee import with_members
from mlpcore.store.inputs import read_width
from mlpcore.store.run_folder import check_result_file, read_history
from mlpcore.store.trained import read_saved
from mlpcore.terminal import say
from mlpcore.training.state import EpochMetrics
from mlpcore.typing import AnyArray

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
    """A network to evaluate. A run also has data, and epochs where they are to be drawn."""

    path: Path
    network: Network
    input_range: str
    width: int | None
    data_name: str
    data: DataSummary | None
    history: Sequence[EpochMetrics]

    @property
    def layers(self) -> str:
        """Its layer sizes as text."""
        return format_layer_sizes(self.network.layer_sizes)

    @property
    def layers_and_width(self) -> str:
        """Its layer sizes, and the width of the ink if it has one."""
        return self.layers if self.width is None else f"{self.layers}, width {self.width}"


#: Networks with their evaluations.
Results: TypeAlias = list[tuple[Candidate, Evaluation]]


def read_candidate(path: Path, with_history: bool) -> Candidate:
    """Reads a run's folder, in which a training may go on, or a file of weights."""
    network, metadata, data = read_saved(path)
    history = read_history(path) if data and with_history else ()
    data_name = metadata.get("dataset", "")
    seen = metadata["input_range"], read_width(metadata)
    return Candidate(path, network, *seen, data_name, data, history)


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
    first = next((each.data for each in candidates if each.data), None)
    if options.data or options.dataset or first is None:
        return dataset.load(options.data, name=options.dataset)
    return first.load()


def check_fit(candidates: Sequence[Candidate], data: Dataset) -> None:
    """Raises InputError unless the networks take these images and know these classes."""
    height, width = data.image_shape
    for each in candidates:
        sizes = each.network.layer_sizes
        if (sizes[0], sizes[-1]) != (data.n_inputs, data.n_classes):
            raise InputError(
                f"{shown(each.path)} is a network of {each.layers}: expected "
                f"{data.n_inputs:,} inputs and {data.n_classes} classes for {data.name}, "
                f"images of {height} x {width}; --data names other data"
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
        if each.data and each.data.sha256 != sha256:
            part = ", a part held out" if each.data.held_out else ""
            say(
                f"note: {shown(each.path)} was trained on other data than these: "
                f"{shown(each.data.name)} as in {shown(each.data.source)}{part}"
            )
        elif not each.data and each.data_name not in ("", data.name):
            say(f"note: {shown(each.path)} was trained on data called {shown(each.data_name)}")
    say(
        f"data: {data.name} ({shown(data.source)}): "
        f"{dataset.test_images_text(len(data.test_labels), data.held_out)} of {height} x {width}"
    )
    say(f"backend: {backend.description}")
    if copies is not None:
        say(copies.describe(len(candidates)))
    say()


def evaluate(
    candidates: Sequence[Candidate], data: Dataset, backend: Backend, copies: Copies | None = None
) -> tuple[Results, Evaluation]:
    """The networks with their evaluations, and the evaluation of all together."""
    outputs: list[AnyArray] = []
    results: Results = []
    for each in candidates:
        try:
            images = to_inputs(data.test_images, each.input_range, each.width)
            if copies is None:
                outputs.append(evaluation.outputs(each.network, images, backend))
            else:
                outputs.append(copies.outputs(each.network, images, backend, each.input_range))
            results.append((each, Evaluation.of(outputs[-1], data.test_labels)))
        except InputError as error:
            raise InputError(f"{shown(each.path)}: {error}") from None
    if len(results) == 1:
        return results, results[0][1]
    whole = mean_outputs([each.network for each in candidates], outputs)
    return results, Evaluation.of(whole, data.test_labels)


def show(results: Results, whole: Evaluation, list_all: bool, classes: Sequence[object]) -> None:
    """Prints the tables."""
    rows = [(shown(each.path), each.layers_and_width, result) for each, result in results]
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
    results: Results, whole: Evaluation, data: Dataset, backend: Backend, copies: Copies | None
) -> str:
    """Everything, as JSON."""
    content: dict[str, object] = {
        "data": {"name": data.name, "source": data.source, "n_test": len(data.test_labels)},
        "backend": backend.description,
        "networks": [
            {"path": str(each.path), "layer_sizes": each.network.layer_sizes}
            | ({} if each.width is None else {"width": each.width})
            | result.to_json()
            for each, result in results
        ],
    }
    if len(results) > 1:
        content["committee"] = whole.to_json()
    if copies is not None:
        content["copies"] = copies.to_json(len(results))
    return json.dumps(content) + "\n"


def draw(
    folder: Path, candidates: Sequence[Candidate], whole: Evaluation, data: Dataset
) -> list[Path]:
    """Writes the figures of the whole, and of each network."""
    title = title_of(candidates[0].network, data.name)
    if len(candidates) > 1:
        title = f"Committee of {len(candidates)} networks on {data.name}"
    paths = write_figures(folder, evaluation_figures(data.test_images, whole, title))
    for number, each in enumerate(candidates, 1):
        suffix = f"-{number}" if len(candidates) > 1 else ""
        held_out = each.data.held_out if each.data else 0
        drawn = network_figures(
            each.network, data.image_shape, each.history, held_out, each.data_name
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
        Committee([each.network for each in candidates])  # refuses what cannot be averaged
        data = load_data(options, candidates)
        check_fit(candidates, data)
        describe(candidates, data, backend, copies)
        results, whole = evaluate(candidates, data, backend, copies)
        show(results, whole, options.all, data.classes)
        if options.json:
            atomic_write(options.json, document(results, whole, data, backend, copies).encode())
        if options.figures:
            say()
            for path in draw(options.figures, candidates, whole, data):
                say(f"figure: {shown(path)}")
        return 0

    return run_tool(command)
