"""`mlpcore evaluate` from a checkout."""

import sys

from mlpcore.commands.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
