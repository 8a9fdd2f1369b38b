"""Measures learning from streams, ours and others'; see `--help`. It needs the extra `peers`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import joblib

from mlpcore.files import atomic_write
from mlpcore.store.provenance import machine
from streaming import accuracy, calls, words

ALL = ("accuracy", "calls", "words")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000, help="of a stream at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2000, help="of each kind")
    parser.add_argument("--rows", type=int, default=100_000, help="of the sparse matrix")
    parser.add_argument("--jobs", type=int, default=joblib.cpu_count(), help="for the accuracy")
    parser.add_argument("--only", choices=ALL, action="append", help="measure this")
    parser.add_argument("output", type=Path, help="a JSON file; what is not measured stays in it")
    args = parser.parse_args()
    record = json.loads(args.output.read_text()) if args.output.exists() else {}
    record |= {"how": "tools/streams.py", "machine": machine()}
    for name in args.only or ALL:
        if name == "accuracy":
            record |= accuracy.measure(args.samples, args.seeds, args.jobs)
        elif name == "calls":
            record[name] = {each: calls.microseconds(each, args.calls) for each in calls.NETWORKS}
        else:
            record[name] = {each: words.measure(each, args.rows) for each in words.LEARNERS}
        atomic_write(args.output, (json.dumps(record, indent=1) + "\n").encode())
    for name, module in (("accuracy", accuracy), ("calls", calls), ("words", words)):
        if name in record:
            print(module.table(record[name]), end="\n\n")


if __name__ == "__main__":
    main()
