"""The paper's Table 1 from one command; see `--help`."""

import sys

from mlpcore.__main__ import run

if __name__ == "__main__":
    sys.exit(run("table1.command"))
