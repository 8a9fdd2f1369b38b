"""Trained networks as arguments of commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlpcore import backends
from mlpcore.errors import shown
from mlpcore.evaluation.copies import Copies
from mlpcore.inference import TrainedClassifier
from mlpcore.inference.classifier import PRETRAINED, PRETRAINED_FILE
from mlpcore.inference.inputs import check_takes_digits
from mlpcore.store.committee import holds_committee, with_members
from mlpcore.store.run_folder import holds_run
from mlpcore.store.trained import TrainedNetwork
from mlpcore.terminal import say


def network_path(text: str) -> Path:
    """The type of an argument: a path. `PRETRAINED` is that of the network in the package."""
    if not text:
        raise argparse.ArgumentTypeError("'', expected a path")
    return PRETRAINED_FILE if text == PRETRAINED else Path(text)


def add_network_arguments(parser: argparse.ArgumentParser, nargs: str) -> None:
    """Runs, committees or files of weights, for `with_members`."""
    what = f"runs, committees, .safetensors files, or {PRETRAINED}, the network in the package"
    parser.add_argument(
        "networks", metavar="RUN|WEIGHTS", type=network_path, nargs=nargs, help=what
    )


def pretrained_note(trained: TrainedNetwork) -> str:
    """The line that says that the network of the package guesses, and how good it is."""
    errors, n = (int(trained.metadata[name]) for name in ("test_errors", "n_test"))
    return (
        f"no network is named: that of the package is used, {trained.path.stem}, which misreads "
        f"{100 * errors / n:.2f} % of MNIST's test digits"
    )


def is_network(path: Path) -> bool:
    """Whether an argument names networks: a run's folder, a committee's, or a .safetensors file."""
    if path.suffix == ".safetensors":
        return True
    return path.is_dir() and (holds_run(path) or holds_committee(path))


def read_networks(paths: Sequence[Path], copies: Copies | None) -> TrainedClassifier:
    """The networks, or that of the package; an InputError unless they take MNIST's format."""
    networks = [TrainedNetwork.read(path) for path in with_members(paths or [PRETRAINED_FILE])]
    for each in networks:
        check_takes_digits(each.pixels, shown(each.path))
    if not paths:
        say(f"note: {pretrained_note(networks[0])}", sys.stderr)
    if copies is not None:
        say(f"note: {copies.describe(len(networks))}", sys.stderr)
    return TrainedClassifier(networks, backends.get("cpu", 1), copies)


def document(
    classifier: TrainedClassifier, kind: str, entries: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The networks and what they read, entries of a kind, for JSON."""
    networks = [
        {"file": str(each.path), "layer_sizes": each.network.layer_sizes}
        for each in classifier.networks
    ]
    result: dict[str, Any] = {"networks": networks, kind: entries}
    if classifier.copies is not None:
        result["copies"] = classifier.copies.to_json(len(networks))
    return result
