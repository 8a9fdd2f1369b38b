"""`mlpcore train` from a checkout."""

import sys

from mlpcore.commands.train import main

if __name__ == "__main__":
    sys.exit(main())
