"""Makes the network of the package from the best one of a finished run on MNIST: its weights in
float16, with its settings and its errors, counted anew. Beside it is its SHA-256."""

import dataclasses
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from mlpcore import backends
from mlpcore.commands.options import Parser, run_tool
from mlpcore.data.dataset import MNIST
from mlpcore.errors import InputError, shown
from mlpcore.files import atomic_write, make_folder
from mlpcore.inference.classifier import PRETRAINED_FILE, TrainedClassifier
from mlpcore.store.documents import to_json
from mlpcore.store.run_folder import Run, read_settings
from mlpcore.store.trained import TrainedNetwork
from mlpcore.store.weights import in_float16, to_safetensors


def make(folder: Path, path: Path) -> None:
    """Writes the file and its SHA-256."""
    run, trained = Run(folder, *read_settings(folder)), TrainedNetwork.read(folder)
    state = run.load()
    best = state.best_metrics
    if best is None or state.epoch < run.config.epochs or run.data.name != MNIST:
        raise InputError(f"{shown(folder)}: expected a finished run on MNIST")
    data = run.data.load()
    rounded = dataclasses.replace(trained, network=in_float16(trained.network))
    classifier = TrainedClassifier([rounded], backends.get("cpu"))
    result, _ = classifier.evaluate(data.test_images, data.test_labels)
    evidence = {
        "epochs": str(run.config.epochs),
        "training": to_json(run.config),
        "validation_errors": str(best.validation_errors),
        "n_validation": str(best.n_train),
        "test_errors": str(result.errors),
        "n_test": str(result.n),
    }
    make_folder(path.parent)
    metadata = trained.known_metadata() | evidence
    content = to_safetensors(trained.network, metadata, "float16")
    atomic_write(path, content)
    line = f"{hashlib.sha256(content).hexdigest()}  {path.name}\n"
    atomic_write(path.with_suffix(".sha256"), line.encode())
    print(f"{shown(path)}: {len(content):,} bytes, test error {result.error_rate:.2f} %")
    print(line, end="")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for bad input."""
    parser = Parser(description=__doc__, allow_abbrev=False)
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a run")
    out = "file to write (mlpcore/pretrained/net1.safetensors)"
    parser.add_argument("--out", metavar="FILE", type=Path, default=PRETRAINED_FILE, help=out)

    def command() -> int:
        options = parser.parse_args(argv)
        make(options.run, options.out)
        return 0

    return run_tool(command)


if __name__ == "__main__":
    sys.exit(main())
