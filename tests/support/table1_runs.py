"""Small runs of the paper's experiment, and made-up records of large ones."""

import os
import re
from pathlib import Path

import msgspec

from mlpcore.commands import runs
from mlpcore.data.summary import DataSummary
from mlpcore.network.architecture import PRESETS
from mlpcore.report.console import Console
from mlpcore.store.run_folder import Run
from mlpcore.training.config import TrainingConfig
from mlpcore.training.state import EpochMetrics
from small_runs import assert_same_result
from table1.command import main
from table1.records import Record

#: Hidden layers instead of those of the paper's networks.
SMALL = {"net1": (8,), "net2": (9, 6)}

MNIST = DataSummary("MNIST", "here", (29, 29), 10, 60_000, 10_000, "0123", (28, 28))
LETTERS = msgspec.structs.replace(MNIST, name="letters", sha256="4567")


def arguments(data, *more):
    return ["--nets", "1,2", "--epochs", "3", "--threads", "1", "--data", data, *more]


def run_state(folder):
    return Run.open(Path(folder), to_train=False).load()


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def assert_finished(out, expected):
    """All runs in one folder have come to the same as those in another."""
    for name in ("net1-seed0", "net2-seed0"):
        assert_same_result(run_state(Path(out, name)), run_state(Path(expected, name)))
        assert Path(out, name, runs.REPORT).exists()


def refusal(capsys, *argv):
    """The one line on stderr with which the tool refuses its arguments."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    err = capsys.readouterr().err
    assert re.fullmatch(r"error: [^\n]+\n", err)
    return err


def stop_before(patch, epoch, number):
    """Sends this process a signal as soon as so many epochs of a run are done."""
    start = Console.on_epoch_start

    def send(self, trainer):
        start(self, trainer)
        if trainer.state.epoch == epoch:
            os.kill(os.getpid(), number)

    patch.setattr(Console, "on_epoch_start", send)


def metrics(epoch, validation_errors=600, test_errors=60, seconds=(1.0, 6.0, 2.0)):
    deformation, training, evaluation = seconds
    return EpochMetrics(
        epoch=epoch, learning_rate=1e-3, n_train=60_000, n_test=10_000, training_errors=900,
        loss=0.1, validation_errors=validation_errors, test_errors=test_errors,
        deformation_seconds=deformation, training_seconds=training, evaluation_seconds=evaluation,
    )  # fmt: skip


def record(net="net1", seed=0, errors=((600, 60),), epochs=None, data=MNIST, **more):
    """A run whose epochs made these validation and test errors; finished unless `epochs` is."""
    config = TrainingConfig(PRESETS[net], epochs=epochs or len(errors), seed=seed)
    history = tuple(metrics(i, *each) for i, each in enumerate(errors, 1))
    return Record(Path(f"{net}-seed{seed}"), config, data, history, **more)
