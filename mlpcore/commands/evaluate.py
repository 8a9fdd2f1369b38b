"""`mlpcore evaluate`: what trained networks get wrong, alone and as a committee."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.networks import (
    add_copies_options,
    add_network_arguments,
    given_copies,
    network_name,
)
from mlpcore.commands.options import (
    add_backend_options,
    add_data_options,
    command_main,
    command_parser,
)
from mlpcore.data import dataset
from mlpcore.data.dataset import Dataset
from mlpcore.data.summary import DataSummary
from mlpcore.errors import InputError, shown
from mlpcore.evaluation.evaluation import Evaluation
from mlpcore.files import atomic_write, check_no_link, check_writable
from mlpcore.inference import TrainedClassifier
from mlpcore.inference.inputs import takes_digits
from mlpcore.network.architecture import format_layer_sizes
from mlpcore.report.figures import trained_figures, write_figures
from mlpcore.report.results import confusion_table, evaluation_table, misclassified_table
from mlpcore.report.tables import text_table
from mlpcore.store.committee import with_members
from mlpcore.store.run_folder import check_result_file, read_history
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say

#: Misclassified samples that are listed without --all.
LISTED = 20

#: The confusion matrix of more classes does not fit a terminal.
MAX_COLUMNS = 20

TEXT = """\
Counts what networks get wrong on a test set: the best network of a run, or all
members of a committee. Several networks are evaluated alone and as a
committee."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
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


def load_data(options: argparse.Namespace, networks: Sequence[TrainedNetwork]) -> Dataset:
    """The data that the options name, else those of the first run, else what is found.

    Files that are named or found are read with the values of the first network's training. All of
    them are for the test if they have no test set, unless a network may have been trained on a
    part: a file of weights alone knows only the name of its data. An InputError is raised unless
    the first, and so all networks, fits these images and classes.
    """
    first, known = networks[0], [each.data for each in networks if each.data]
    if known and not options.data and not options.dataset:
        data = known[0].load()
        if data.divided:  # other pictures would be divided in another way
            known[0].check_same(DataSummary.of(data), "the training")
        return data
    data = dataset.load(options.data, name=options.dataset, value_range=first.pixels)
    taken, found = (
        "images of {} x {} and {} classes".format(*each.pixels.pixel_shape, len(each.classes))
        for each in (first, data)
    )
    present = [str(each) for each in data.classes]
    missing = [name for name in map(str, first.classes) if name not in present]
    fits = first.pixels.image_shape == data.image_shape and len(first.classes) == data.n_classes
    if missing or not fits:
        hint = "; mlpcore predict takes pictures of any size" * takes_digits(first.pixels)
        without = f" (none of class {shown(missing[0])})" if missing else ""
        raise InputError(
            f"{data.name} has {found}{without}: expected {taken} for {network_name(first.path)}, "
            f"or different --data{hint}"
        )
    if not data.divided or data.name in [each.data_name for each in networks if not each.data]:
        return data
    seen = data.sha256 in [each.sha256 for each in known]
    return data if seen else data.all_for_test()


def describe(paths: Sequence[Path], classifier: TrainedClassifier, data: Dataset) -> None:
    """Prints the data, the backend and the copies, with a note for networks of other data."""
    if data.notice:
        say(f"note: {data.notice}")
    for path, each in zip(paths, classifier.networks):
        if each.data and each.data.source == data.source and each.data.held_out < data.held_out:
            say(f"note: {network_name(path)} learned from these held-out images")
        elif each.data and each.data.sha256 != data.sha256:
            part = ", a part held out" if each.data.held_out else ""
            say(
                f"note: {network_name(path)} was trained on other data: "
                f"{shown(each.data.name)} from {shown(each.data.source)}{part}"
            )
        elif not each.data and each.data_name != data.name:
            name = shown(each.data_name)
            say(f"note: {network_name(path)} was trained on other data: {name}")
    height, width = data.image_shape
    say(
        f"data: {data.name} ({shown(data.source)}): "
        f"{dataset.test_images_text(len(data.test_labels), data.held_out)} of {height} x {width}"
    )
    say(f"backend: {classifier.backend.description}")
    if classifier.copies is not None:
        say(classifier.copies.describe(len(paths)))
    say()


def show(
    rows: list[tuple[str, str, Evaluation]], list_all: bool, classes: Sequence[object]
) -> None:
    """Prints the tables: a row for each network, with its name, its layers and its evaluation.

    The other tables are those of the last row.
    """
    say(text_table(evaluation_table(rows)))
    whole = rows[-1][2]
    of = " of the committee" if len(rows) > 1 else ""
    if whole.n_classes <= MAX_COLUMNS:
        say(f"\nconfusion matrix{of}, rows: label, columns: first guess")
        say(text_table(confusion_table(whole, classes)))
    if whole.errors:
        listed = whole.errors if list_all else min(whole.errors, LISTED)
        say(f"\nmisclassified{of}, with the two greatest outputs")
        say(text_table(misclassified_table(whole, listed, classes)))
        if listed < whole.errors:
            say(f"and {whole.errors - listed:,} more: --all lists them")


def evaluate(options: argparse.Namespace) -> int:
    """Returns the exit status, which is 0 whatever the error rate."""
    copies = given_copies(options)
    backend = backends.get(options.backend or "auto", options.threads)
    if options.json:
        check_result_file(options.json)
    if options.figures:
        check_no_link(options.figures)
        check_writable(options.figures)
    paths = with_members(options.networks)
    networks = [TrainedNetwork.read(path) for path in paths]
    # A run's epochs are read before work begins, if they are to be drawn.
    drawn = [options.figures and each.data for each in networks]
    histories = [read_history(path) if wanted else [] for path, wanted in zip(paths, drawn)]
    classifier = TrainedClassifier(networks, backend, copies)
    data = load_data(options, networks)
    describe(paths, classifier, data)
    images = classifier.pixels.rescale(data.test_set, data.pixels)
    whole, members = classifier.evaluate(images, data.test_labels)
    rows = [
        (network_name(path), format_layer_sizes(n.network.layer_sizes), e)
        for path, n, e in zip(paths, networks, members)
    ]
    if len(rows) > 1:
        rows.append((f"committee of {len(rows)}", "", whole))
    show(rows, options.all, data.classes)
    if options.json:
        content: dict[str, object] = {
            "data": {
                "name": data.name,
                "source": data.source,
                "n_test": len(data.test_labels),
                "classes": data.classes,
            },
            "backend": backend.description,
            "networks": [
                {"path": str(path), "layer_sizes": each.network.layer_sizes} | result.to_json()
                for path, each, result in zip(paths, networks, members)
            ],
        }
        if len(members) > 1:
            content["committee"] = whole.to_json()
        if copies is not None:
            content["copies"] = copies.to_json(len(members))
        atomic_write(options.json, json.dumps(content).encode(), b"\n")
    if options.figures:
        say()
        figures = trained_figures(networks, histories, data, whole)
        for path in write_figures(options.figures, figures):
            say(f"figure: {shown(path)}")
    return 0


main = command_main(parse, evaluate)
