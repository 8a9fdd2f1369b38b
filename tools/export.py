"""`mlpcore export` from a checkout."""

import sys

from mlpcore.commands.export import main

if __name__ == "__main__":
    sys.exit(main())
