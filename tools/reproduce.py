"""The paper's Table 1 from one command; see `--help` and `mlpcore.table1`."""

import sys

from mlpcore.table1.command import main

if __name__ == "__main__":
    sys.exit(main(script=__file__))
