"""Hostile tries for an hour, and what they broke; see `--help` and docs/robustness.md."""

import sys

from mlpcore.__main__ import run

if __name__ == "__main__":
    sys.exit(run("torture.command"))
