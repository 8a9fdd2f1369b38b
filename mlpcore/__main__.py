"""`python -m mlpcore`, the command `mlpcore`, and the start of the scripts in tools/."""

import importlib
import sys

from mlpcore.interrupts import leave_on_interrupt


def run(module: str) -> int:
    """Import a module and return the exit status of its `main`.

    Ctrl-C ends the process without a traceback while modules are imported, and at its end.
    """
    leave_on_interrupt()
    try:
        status: int = importlib.import_module(module).main()
        return status
    finally:
        leave_on_interrupt()


def main() -> int:
    """The command `mlpcore`."""
    return run("mlpcore.commands")


if __name__ == "__main__":
    sys.exit(main())
