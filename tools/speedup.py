"""Times every routine on every backend; see `--help` and `speed`."""

import sys

from mlpcore.__main__ import run

if __name__ == "__main__":
    sys.exit(run("speed.command"))
