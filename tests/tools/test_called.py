"""Each tool is called by its file, with the arguments of the command line."""

import runpy
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
CALLED = sorted(path.name for path in TOOLS.glob("*.py") if "__main__" in path.read_text())


@pytest.mark.parametrize("name", CALLED)
def test_help(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(TOOLS / name), "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(sys.argv[0], run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: ")
