"""Imports and findings that each child process would repeat, made once."""

import importlib

import pytest

from mlpcore.__main__ import COMMANDS
from mlpcore.store import provenance


@pytest.fixture(scope="module")
def warm_folder(tmp_path_factory):
    """An empty folder, in a process that has imported what commands need.

    Commands find there neither this machine's data nor a network.
    """
    provenance.revision()
    provenance.machine()
    modules = [f"mlpcore.commands.{name}" for name in COMMANDS]
    for name in (*modules, "matplotlib.figure", "matplotlib.backends.backend_agg", "onnx"):
        importlib.import_module(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLPCORE_DATA", "")
        folder = tmp_path_factory.mktemp("work")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for name in ("http_proxy", "https_proxy"):
            patch.setenv(name, "http://127.0.0.1:9")
        yield folder
