"""Times every routine on every backend; see `--help` and `mlpcore.benchmark`."""

import sys

from mlpcore.benchmark.command import main

if __name__ == "__main__":
    sys.exit(main())
