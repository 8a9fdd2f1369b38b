"""`python -m mlpcore`: the same as the command `mlpcore`."""

import sys

from mlpcore.commands import main

if __name__ == "__main__":
    sys.exit(main())
