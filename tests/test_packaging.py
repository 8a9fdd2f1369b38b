"""An installed mlpcore is found from wherever Python starts."""

import subprocess
import sys


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path):
    """As in the folder above a clone: `mlpcore` there has no `__init__.py`."""
    (tmp_path / "mlpcore").mkdir()
    command = [sys.executable, "-c", "from mlpcore import Network"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
