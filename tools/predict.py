"""`mlpcore predict` from a checkout."""

import sys

from mlpcore.commands.predict import main

if __name__ == "__main__":
    sys.exit(main())
