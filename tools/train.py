"""`mlpcore train` from a checkout."""

import sys

from mlpcore.__main__ import run

if __name__ == "__main__":
    sys.exit(run("mlpcore.commands.train"))
