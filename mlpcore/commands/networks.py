"""Trained networks as arguments of commands."""

from __future__ import annotations

import argparse
from pathlib import Path

from mlpcore.inference.classifier import PRETRAINED, PRETRAINED_FILE
from mlpcore.store.trained import TrainedNetwork


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
