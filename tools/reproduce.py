"""The paper's Table 1 from one command; see `--help`."""

import sys

from table1.command import main

if __name__ == "__main__":
    sys.exit(main())
