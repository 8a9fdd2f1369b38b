"""The `mlpcore` command: options, signals, printing, exit statuses.

Here belongs a thin module for each subcommand. What it does belongs in the packages below.
"""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "train": "train a network on deformed digits, or go on with a run",
    "evaluate": "count the errors of networks and of their committee",
    "predict": "read pictures of digits",
    "preview": "draw what the deformation makes of training images",
    "export": "write a network for other programs: ONNX, safetensors",
    "backends": "list what can compute here, and why the rest cannot",
}


def main(argv: list[str] | None = None) -> int:
    """Runs a subcommand; returns its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in COMMANDS:
        module = importlib.import_module(f"mlpcore.commands.{argv[0]}")
        status: int = module.main(argv[1:])
        return status
    raise NotImplementedError
