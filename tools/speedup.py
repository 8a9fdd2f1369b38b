"""Times every routine on every backend; see `--help` and `speed`."""

import sys

from speed.command import main

if __name__ == "__main__":
    sys.exit(main())
