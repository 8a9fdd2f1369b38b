"""Hostile tries for an hour, and what they broke; see `--help` and docs/robustness.md."""

import sys

from torture.command import main

if __name__ == "__main__":
    sys.exit(main())
