"""`mlpcore preview` from a checkout."""

import sys

from mlpcore.commands.preview import main

if __name__ == "__main__":
    sys.exit(main())
