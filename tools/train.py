"""`mlpcore train` from a checkout."""

import sys

from mlpcore.__main__ import run

if __name__ == "__main__":
    sys.argv.insert(1, "train")
    sys.exit(run())
