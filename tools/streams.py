"""Measures learning from streams, ours and others'; see `--help`. It needs the extra `peers`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import joblib

from mlpcore.files import atomic_write
from mlpcore.store.provenance import machine
from streaming import accuracy, calls, words
from streaming.learners import LEARNERS, STREAMS

ALL = ("accuracy", "calls", "words")


def measure_accuracy(record: dict[str, Any], args: argparse.Namespace) -> None:
    """Adds what is missing, and keeps each result as it comes."""
    accuracies = record.setdefault("accuracy", accuracy.nothing_yet())
    curves = record.setdefault("curves", {learner: [] for learner in LEARNERS})
    tasks = [
        (stream, learner, seed, args.samples)
        for seed in range(1, args.seeds + 1)
        for learner in LEARNERS
        for stream in STREAMS
        if len(accuracies[stream][learner]) < seed
        or (stream == accuracy.CURVE and len(curves[learner]) < seed)
    ]
    run = joblib.Parallel(args.jobs, return_as="generator", batch_size=1)
    for task, (found, hits) in zip(
        tasks, run(joblib.delayed(accuracy.follow)(*task) for task in tasks)
    ):
        stream, learner, seed, _ = task
        accuracies[stream][learner][seed - 1 :] = [found]
        if stream == accuracy.CURVE:
            curves[learner].append(accuracy.curve(hits))
        keep(record, args.output)


def measure_calls(record: dict[str, Any], args: argparse.Namespace) -> None:
    """Replaces the times of calls."""
    record["calls"] = {name: calls.microseconds(name, args.calls) for name in calls.NETWORKS}
    keep(record, args.output)


def measure_words(record: dict[str, Any], args: argparse.Namespace) -> None:
    """Replaces the figures of sparse matrices."""
    record["words"] = {name: words.measure(name, args.rows) for name in words.LEARNERS}
    keep(record, args.output)


def keep(record: dict[str, Any], output: Path) -> None:
    """Writes the file."""
    atomic_write(output, (json.dumps(record, indent=1) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000, help="of a stream at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2000, help="of each kind")
    parser.add_argument("--rows", type=int, default=100_000, help="of the sparse matrix")
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="for the accuracy")
    parser.add_argument("--only", choices=ALL, action="append", help="measure this")
    parser.add_argument("output", type=Path, help="a JSON file; accuracies that it has stay")
    args = parser.parse_args()
    record = json.loads(args.output.read_text()) if args.output.exists() else {}
    record |= {"how": "tools/streams.py", "machine": machine()}
    for name in args.only or ALL:
        globals()[f"measure_{name}"](record, args)
    for module, name in ((accuracy, "accuracy"), (calls, "calls"), (words, "words")):
        if name in record:
            print(module.table(record[name]), end="\n\n")


if __name__ == "__main__":
    main()
