"""Evaluates trained networks on a test set: what they get wrong, alone and as a committee."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlpcore import Committee, Evaluation, InputError, Network, backends
from mlpcore.backends import Backend
from mlpcore.commands.options import Parser, add_backend_options, add_data_options, run_tool
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import shown
from mlpcore.evaluation import evaluation
from mlpcore.evaluation.committee import mean_outputs
from mlpcore.files import atomic_write, check_writable
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.figures import evaluation_figures, network_figures, write_figures
from mlpcore.report.results import confusion_table, evaluation_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.run_folder import check_result_file, read_history, read_settings, weights_file
from mlpcore.store.weights import read_network
from mlpcore.training.state import EpochMetrics

#: Misclassified samples listed without --all.
LISTED = 20

#: Classes whose confusion matrix fits a terminal.
MAX_COLUMNS = 20


@dataclass(frozen=True)
class Candidate:
    """A network to evaluate; of a run also its data and, if wanted, its epochs."""

    path: Path
    network: Network
    data_name: str = ""  #: as a file of weights says it
    data: DataSummary | None = None
    history: Sequence[EpochMetrics] = ()

    @classmethod
    def read(cls, path: Path, with_history: bool) -> Candidate:
        """Reads a run's folder, in which a training may go on, or a file of weights."""
        file = weights_file(path)
        if file == path:
            network, metadata = read_network(path)
            return cls(path, network, metadata.get("dataset", ""))
        config, data = read_settings(path)
        network, _ = read_network(file, data.layer_sizes(config.hidden_layers))
        history = read_history(path) if with_history else ()
        return cls(path, network, data.name, data, history)


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add(
        "networks",
        nargs="+",
        metavar="RUN|WEIGHTS",
        help="folder of tools/train.py, whose best network counts, or a .safetensors file; "
        "several form a committee, too, whose outputs are averaged",
    )
    add_data_options(parser)
    add_backend_options(parser)
    add("--all", action="store_true", help=f"list all misclassified, not just {LISTED}")
    add("--json", type=Path, metavar="FILE", help="write everything for programs")
    add("--figures", type=Path, metavar="DIR", help="draw misclassified images, confusion matrix, "
        "learning curves and weights")  # fmt: skip
    return parser.parse_args(argv)


def load_data(options: argparse.Namespace, candidates: Sequence[Candidate]) -> Dataset:
    """The data that the options name, else those of the first run, else what is found."""
    first = next((each.data for each in candidates if each.data), None)
    if options.data or options.dataset or first is None:
        return dataset.load(options.data, name=options.dataset)
    return first.load()


def check_fit(candidates: Sequence[Candidate], data: Dataset) -> None:
    """Raises InputError unless the networks are for such data."""
    height, width = data.image_shape
    for each in candidates:
        sizes = each.network.layer_sizes
        if (sizes[0], sizes[-1]) != (data.n_inputs, data.n_classes):
            raise InputError(
                f"{shown(each.path)} is a network of {format_layer_sizes(sizes)}: expected "
                f"{data.n_inputs:,} inputs and {data.n_classes} classes for {data.name}, "
                f"images of {height} x {width}; --data names other data"
            )


def describe(candidates: Sequence[Candidate], data: Dataset, backend: Backend) -> None:
    """Says what is evaluated, on what."""
    height, width = data.image_shape
    if data.notice:
        print(f"note: {data.notice}")
    sha256 = DataSummary.of(data).sha256
    for each in candidates:
        if not each.data and each.data_name not in ("", data.name):
            print(f"note: {shown(each.path)} was trained on data called {shown(each.data_name)}")
        if each.data and each.data.sha256 != sha256:
            part = ", a part held out" if each.data.held_out else ""
            print(
                f"note: {shown(each.path)} was trained on other data than these: "
                f"{shown(each.data.name)} as in {shown(each.data.source)}{part}"
            )
    print(
        f"data: {data.name} ({shown(data.source)}): "
        f"{dataset.test_images_text(len(data.test_labels), data.held_out)} of {height} x {width}"
    )
    print(f"backend: {backend.description}\n")


def evaluate(
    candidates: Sequence[Candidate], data: Dataset, backend: Backend
) -> tuple[list[Evaluation], Evaluation]:
    """Of each network, and of all together."""
    outputs, evaluations = [], []
    for each in candidates:
        try:
            outputs.append(evaluation.outputs(each.network, data.test_images, backend))
            evaluations.append(Evaluation.of(outputs[-1], data.test_labels))
        except InputError as error:
            raise InputError(f"{shown(each.path)}: {error}") from None
    if len(evaluations) == 1:
        return evaluations, evaluations[0]
    return evaluations, Evaluation.of(mean_outputs(outputs), data.test_labels)


def show(
    candidates: Sequence[Candidate],
    evaluations: Sequence[Evaluation],
    whole: Evaluation,
    list_all: bool,
) -> None:
    """Prints everything."""
    names = [shown(each.path) for each in candidates]
    layers = [format_layer_sizes(each.network.layer_sizes) for each in candidates]
    rows = list(zip(names, layers, evaluations))
    if len(rows) > 1:
        rows.append((f"committee of {len(rows)}", "", whole))
    print(text_table(evaluation_table(rows)))
    of = " of the committee" if len(candidates) > 1 else ""
    if whole.n_classes <= MAX_COLUMNS:
        print(f"\nconfusion matrix{of}, rows: label, columns: first guess")
        print(text_table(confusion_table(whole)))
    if whole.errors:
        shown_errors = whole.errors if list_all else min(whole.errors, LISTED)
        print(f"\nmisclassified{of}, with the two greatest outputs")
        print(text_table(misclassified_table(whole, shown_errors)))
        if shown_errors < whole.errors:
            print(f"and {whole.errors - shown_errors:,} more: --all lists them")


def document(
    candidates: Sequence[Candidate],
    evaluations: Sequence[Evaluation],
    whole: Evaluation,
    data: Dataset,
    backend: Backend,
) -> dict[str, object]:
    """Everything, for JSON."""
    networks = [
        {"path": str(each.path), "layer_sizes": each.network.layer_sizes} | result.to_json()
        for each, result in zip(candidates, evaluations)
    ]
    content: dict[str, object] = {
        "data": {"name": data.name, "source": data.source, "n_test": len(data.test_labels)},
        "backend": backend.description,
        "networks": networks,
    }
    return content | ({"committee": whole.to_json()} if len(networks) > 1 else {})


def draw(
    folder: Path, candidates: Sequence[Candidate], whole: Evaluation, data: Dataset
) -> list[Path]:
    """The figures of the whole, and of each network."""
    paths = write_figures(folder, evaluation_figures(data.test_images, whole))
    for number, each in enumerate(candidates, 1):
        held_out = each.data.held_out if each.data else 0
        figures = network_figures(each.network, data.image_shape, each.history, held_out)
        if len(candidates) > 1:
            figures = {f"{name}-{number}": figure for name, figure in figures.items()}
        paths += write_figures(folder, figures)
    return paths


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0 whatever the error rate, 2 for bad input."""

    def command() -> int:
        options = parse(argv)
        backend = backends.get(options.backend or "auto", options.threads)
        if options.json:
            check_result_file(options.json)
        if options.figures:
            check_writable(options.figures)
        candidates = [
            Candidate.read(Path(name), bool(options.figures)) for name in options.networks
        ]
        Committee([each.network for each in candidates])  # refuses what cannot be averaged
        data = load_data(options, candidates)
        check_fit(candidates, data)
        describe(candidates, data, backend)
        evaluations, whole = evaluate(candidates, data, backend)
        show(candidates, evaluations, whole, options.all)
        if options.json:
            content = document(candidates, evaluations, whole, data, backend)
            atomic_write(options.json, json.dumps(content).encode() + b"\n")
        if options.figures:
            print()
            for path in draw(options.figures, candidates, whole, data):
                print(f"figure: {shown(path)}")
        return 0

    return run_tool(command)
